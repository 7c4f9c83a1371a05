// MPICH's launcher, mpiexec's Hydra, and the three things that MPICH 4.0 leaves to be wished for
// when a job ends. A rank and Hydra talk over a socket (PMI, one line each way); these functions
// say there what the library says too late or not at all. Under other launchers they do nothing.
#pragma once

#include <functional>

namespace tandem {

// To be called first of all in main(), before there are threads.
//
// When a rank dies (kill -9, out of memory), Hydra ends the job at once without saying which rank
// it was. So every rank has a watcher, a small process that holds the socket too: Hydra hears
// nothing until the watcher has said on stderr which rank is gone and has asked for the end.
void watch_over_this_rank(const char* app);

// An orderly end is near: the watcher leaves.
void dismiss_watcher();

// Ends the job for this rank and returns true once all ranks have called it; false where Hydra is
// not the launcher. In MPI_Finalize a rank that is done stops answering while others still close
// their connections to it, and over TCP the job hangs every second time. Here `progress` goes on
// until all are done.
bool leave_hydra(const std::function<void()>& progress);

// Ends the job at once with this status, without MPI_Abort's own message. Returns where Hydra is
// not the launcher.
void abort_hydra(int status);

}  // namespace tandem

// MPICH's launcher, mpiexec's Hydra, and the three things that MPICH 4.0 leaves to be wished for
// when a job ends. A rank and Hydra talk over a socket (PMI, one line each way); these functions
// say there what the library says too late or not at all. Under other launchers they do nothing.
#pragma once

#include <functional>

namespace tandem {

// To be called first of all in main(), before there are threads of ours. Returns in a child: from
// here on the process that Hydra has started is the rank's watcher. (A debugger must follow the
// child.)
//
// When a process of Hydra's dies (kill -9, out of memory, a crash), Hydra ends the job at once,
// without saying which rank it was. Its own watcher sees first that a rank has died and how, says
// so on stderr and asks for the end of the job. What MPI says to Hydra goes through the watcher
// too: where MPI gives up because another rank has died, that one's watcher speaks first.
//
// A rank that dies before main() has no watcher yet; then there is only what Hydra says.
void watch_over_this_rank(const char* app);

// Ends the job for this rank and returns true once all ranks have called it; false where Hydra is
// not the launcher. In MPI_Finalize a rank that is done stops answering while others still close
// their connections to it, and over TCP the job hangs every second time. Here `progress` goes on
// until all are done.
bool leave_hydra(const std::function<void()>& progress);

// Ends the job at once with this status, without MPI_Abort's own message. Returns where Hydra is
// not the launcher.
void abort_hydra(int status);

}  // namespace tandem

// Works around three shortcomings of Hydra, MPICH 4.0's launcher, at the end of a job. A rank and
// Hydra talk over a socket (PMI, one line each way). These functions send lines that MPICH sends
// too late or not at all. Under other launchers they do nothing.
#pragma once

#include <functional>

namespace tandem {

// When a rank dies, MPI and UCX may end other ranks that were communicating with it. Their
// watchers wait this long, and UCX longer (crash.h), so that the watcher of the first rank reports
// first.
inline constexpr int kFirstSpeaksMilliseconds = 3000;

// Call it first in main(), before starting threads. It returns in a child process, which is the
// rank. The process that Hydra started becomes the rank's watcher. (A debugger must follow the
// child.)
//
// When a process that Hydra started dies (kill -9, out of memory, a crash), Hydra ends the job at
// once without saying which rank it was. The watcher sees first that its rank has died and how. It
// reports that on stderr and asks Hydra to end the job. MPI's messages to Hydra also pass through
// the watcher, and so do SIGINT and SIGTERM. If MPI aborts because another rank has died, the
// watcher delays the message so that the other watcher reports first.
//
// A rank that dies before main() has no watcher yet, so only Hydra reports it.
void watch_over_this_rank(const char* app);

// Ends the job for this rank, in place of MPI_Finalize. Returns true once all ranks have called it,
// and false if Hydra does not answer or is not the launcher. In MPI_Finalize, a rank that is done
// stops answering while others still close their connections to it, and over TCP the job hangs
// about every second time. This function calls `progress` until all ranks are done.
bool leave_hydra(const std::function<void()>& progress);

// Ends the job at once with this status, without MPI_Abort's message. Returns only if Hydra is not
// the launcher.
void abort_hydra(int status);

}  // namespace tandem

// Makes a process that crashes end at once, and one that UCX aborts wait for the cause's report.
#pragma once

#include <memory>

namespace tandem {

// Restores the signal handlers that UCX has replaced, such as the default action, a sanitizer's
// handler, or nohup's ignored SIGHUP.
//
// UCX comes with MPICH and handles SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGHUP once it is loaded.
// Its handlers allocate and free memory. A process that crashes inside malloc holds the lock that
// they need, and would hang forever. On SIGHUP, UCX only logs more.
//
// Call it first in main(), even if the program will not use MPI.
void take_signals_from_ucx();

// When a rank dies, UCX aborts others that were reading its memory, and prints a backtrace for
// each. After this call, UCX first waits, so that the watcher of the dead rank (hydra.h) can report
// its death and end the job. Other fatal errors that UCX logs are printed after that time, too.
//
// Call it after MPI_Init. It does nothing if this MPI does not use UCX.
void delay_fatal_errors_of_ucx();

// Restores the handlers of crash signals and of SIGHUP when it is destroyed. For use around
// MPI_Init: Open MPI loads UCX there and installs its own handlers, which print a backtrace.
class KeptSignals {
 public:
  KeptSignals();
  ~KeptSignals();
  KeptSignals(const KeptSignals&) = delete;
  KeptSignals& operator=(const KeptSignals&) = delete;

 private:
  struct Actions;
  std::unique_ptr<Actions> before_;
};

}  // namespace tandem

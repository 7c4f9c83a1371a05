// Makes a process that crashes end at once.
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

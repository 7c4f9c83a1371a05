// What a process does when it crashes: it ends at once.
#pragma once

#include <memory>

namespace tandem {

// Gives the signals that UCX has taken back to those who had them: to the default action, which
// ends the process, to a sanitizer, or to nohup, which ignores SIGHUP.
//
// UCX comes with MPICH and takes SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGHUP when it is loaded. Its
// handlers allocate and free memory. A process that crashes inside malloc holds the lock that they
// need and would hang for ever. On SIGHUP, UCX only logs more.
//
// To be called first of all in main(), whether the program will use MPI or not.
void take_signals_from_ucx();

// What is done to the signals of a crash and to SIGHUP while this lives is undone at its end. For
// MPI_Init: Open MPI loads UCX there, and has handlers of its own that print a backtrace.
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

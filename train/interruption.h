// Ctrl-C (SIGINT) and SIGTERM. While a program trains, the first of them is only noted, so that the
// training loop can end between two iterations, within about a second, and save what it has. A
// second one ends the program at once. (One within half a second is the first again: mpiexec passes
// on what the terminal has already sent.) Before and after training, signals act as usual.
#pragma once

#include <memory>

namespace tandem {

// Programs call it; run_app() does. Without it, signals act as usual also during training: a
// library must not take a program's signals away.
void allow_interruptions();

// While it exists, signals are noted, if that is allowed. The number of the signal is 0 if there
// was none. One object at a time.
class Interruptible {
 public:
  Interruptible();
  ~Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

  static int signal();

 private:
  struct Actions;
  std::unique_ptr<Actions> before_;  // null: signals act as usual
};

}  // namespace tandem

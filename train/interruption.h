// Ctrl-C (SIGINT) and SIGTERM. While a program trains, the first of them is only noted, so that the
// training loop can finish its iteration and save what it has. A second one ends the program at
// once. (One within half a second is the first again: mpiexec passes on what the terminal has
// already sent.) Before and after training, signals act as usual.
#pragma once

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
  // Notes a signal, as if it had come. A program that uses Tandem as a library can stop a training
  // so, from any thread.
  static void interrupt(int signal);

 private:
  bool took_signals_ = false;
};

}  // namespace tandem

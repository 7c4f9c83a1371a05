// The threads of workers. They are started only here, as the clock is read only in clock.h.
#pragma once

#include <functional>
#include <string>
#include <thread>
#include <utility>

namespace tandem {

using Thread = std::jthread;  // joins at its end

// A hint for the scheduler. A thread computes for long, or it mostly waits and should run as soon
// as it wakes, even if there are more threads than cores.
enum class Work { computes, waits };

// Whether this thread, and the threads that it starts, spin for up to 1 ms before a wait puts them
// to sleep; until the end of the scope. Waking a thread can take as long as a message, but spinning
// occupies a core, so a launch turns it on only while GPUs compute.
class SpinWhileWaiting {
 public:
  explicit SpinWhileWaiting(bool on) : before_(std::exchange(here_, on)) {}
  ~SpinWhileWaiting() { here_ = before_; }
  SpinWhileWaiting(const SpinWhileWaiting&) = delete;
  SpinWhileWaiting& operator=(const SpinWhileWaiting&) = delete;

  static bool here() { return here_; }

 private:
  static inline thread_local constinit bool here_ = false;
  bool before_;
};

// Starts a thread that debuggers and `top -H` show as `name` (its first 15 characters). Its timed
// waits end on time: Linux may otherwise delay them by 50 µs to save wake-ups, as long as a
// network's latency.
Thread start_thread(const std::string& name, Work work, std::function<void()> body);

}  // namespace tandem

// The threads of ranks: they compute, communicate and write checkpoints. They are started only
// here.
#pragma once

#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "base/virtual_time.h"

namespace tandem {

// Joins in its destructor.
class Thread {
 public:
  Thread() = default;
  explicit Thread(std::jthread thread) : thread_(std::move(thread)) {}
  explicit Thread(VirtualTime::Fiber& fiber) : fiber_(&fiber) {}
  ~Thread() { join(); }
  Thread(Thread&& other) noexcept
      : thread_(std::move(other.thread_)), fiber_(std::exchange(other.fiber_, nullptr)) {}
  Thread& operator=(Thread&& other) noexcept {
    join();
    thread_ = std::move(other.thread_);
    fiber_ = std::exchange(other.fiber_, nullptr);
    return *this;
  }

  void join() {
    if (thread_.joinable()) thread_.join();
    if (fiber_) VirtualTime::here()->join(*std::exchange(fiber_, nullptr));
  }
  void detach() {
    if (thread_.joinable()) thread_.detach();
    fiber_ = nullptr;
  }

 private:
  std::jthread thread_;
  VirtualTime::Fiber* fiber_ = nullptr;  // in virtual time
};

// A hint for the scheduler. A thread either computes for long, or it mostly waits and should run as
// soon as it wakes, even if there are more threads than cores.
enum class Work { computes, waits };

// For the lifetime of this object, sets whether this thread, and threads that it starts, spin for
// up to 1 ms before a wait puts them to sleep. Waking a thread can take as long as a message. But
// spinning occupies a core, so a launch turns it on only if GPUs compute.
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
// waits end on time. By default, Linux may delay them by 50 µs to save wake-ups, which is as long
// as a network's latency. In virtual time, it is a fiber.
Thread start_thread(const std::string& name, Work work, std::function<void()> body);

}  // namespace tandem

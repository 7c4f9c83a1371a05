// A state that threads share and wait on. All blocking between threads goes through here.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "base/clock.h"

namespace tandem {

// Whether threads look for a moment before they sleep. To be woken can take as long as a message;
// but who looks needs a core, and there are some to spare only where the computation is elsewhere.
inline std::atomic<bool> cores_to_spare = false;

// Returns when it holds, at `most`, or after a moment.
template <class Holds>
void look_for_a_moment(Holds&& holds, Clock::time_point most = Clock::time_point::max()) {
  if (!cores_to_spare.load(std::memory_order_relaxed)) return;
  const auto end = std::min(most, Clock::now() + std::chrono::milliseconds(1));
  while (!holds() && Clock::now() < end) std::this_thread::yield();
}

template <class State>
class Monitor {
 public:
  // Calls f(state), alone, and wakes those who wait. They are woken before the lock is given up:
  // whoever has waited may destroy the monitor as soon as it has the lock.
  template <class F>
  decltype(auto) change(F&& f) {
    const std::lock_guard lock(mutex_);
    changed_.notify_all();
    return std::forward<F>(f)(state_);
  }

  // Returns f(state), called alone, and wakes nobody.
  template <class F>
  decltype(auto) look(F&& f) {
    const std::lock_guard lock(mutex_);
    return std::forward<F>(f)(std::as_const(state_));
  }

  // Waits until holds(state), then returns f(state); both are called alone.
  template <class Holds, class F>
  decltype(auto) wait(Holds&& holds, F&& f) {
    look_for_a_moment([&] { return look(holds); });
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return holds(state_); });
    return std::forward<F>(f)(state_);
  }

  // Waits until holds(state) or until the time has come; whether it holds.
  template <class Holds>
  bool wait_until(Clock::time_point time, Holds&& holds) {
    std::unique_lock lock(mutex_);
    return changed_.wait_until(lock, time, [&] { return holds(state_); });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  State state_;
};

}  // namespace tandem

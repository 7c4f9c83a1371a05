// A state that threads share and wait on. All blocking between threads goes through here.
#pragma once

#include <condition_variable>
#include <mutex>
#include <utility>

#include "dist/runtime/clock.h"

namespace tandem {

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

  // Waits until holds(state), then returns f(state); both are called alone.
  template <class Holds, class F>
  decltype(auto) wait(Holds&& holds, F&& f) {
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

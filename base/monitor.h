// State that threads share and wait on. Threads block on each other only here. In virtual time they
// are fibers (virtual_time.h), of which only one runs at a time.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/thread.h"
#include "base/virtual_time.h"

namespace tandem {

// If this thread may spin (SpinWhileWaiting), spins until holds(), for at most 1 ms and not beyond
// `most`.
template <class Holds>
void look_for_a_moment(Holds&& holds, Clock::time_point most = Clock::time_point::max()) {
  if (!SpinWhileWaiting::here()) return;
  const auto end = std::min(most, Clock::now() + std::chrono::milliseconds(1));
  while (!holds() && Clock::now() < end) std::this_thread::yield();
}

template <class State>
class Monitor {
 public:
  // Calls f(state) under the lock and wakes all waiting threads. It notifies before it unlocks,
  // because a thread that has waited may destroy the monitor as soon as it gets the lock.
  template <class F>
  decltype(auto) change(F&& f) {
    if (VirtualTime* time = VirtualTime::here()) {
      time->meet();
      time->wake(waiting_);
      return std::forward<F>(f)(state_);
    }
    const std::lock_guard lock(mutex_);
    changed_.notify_all();
    return std::forward<F>(f)(state_);
  }

  // Returns f(state), called under the lock. Wakes no thread.
  template <class F>
  decltype(auto) look(F&& f) {
    if (VirtualTime* time = VirtualTime::here()) time->meet();
    const std::lock_guard lock(mutex_);
    return std::forward<F>(f)(std::as_const(state_));
  }

  // Waits until holds(state), then returns f(state). Both are called under the lock.
  template <class Holds, class F>
  decltype(auto) wait(Holds&& holds, F&& f) {
    if (VirtualTime* time = VirtualTime::here()) {
      time->meet();
      while (!holds(state_)) time->wait(waiting_);
      return std::forward<F>(f)(state_);
    }
    look_for_a_moment([&] { return look(holds); });
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return holds(state_); });
    return std::forward<F>(f)(state_);
  }

  // Waits until holds(state) or until `time`. Returns whether it holds.
  template <class Holds>
  bool wait_until(Clock::time_point time, Holds&& holds) {
    if (VirtualTime* fibers = VirtualTime::here()) {
      fibers->meet();
      while (!holds(state_) && Clock::now() < time) fibers->wait(waiting_, time);
      return holds(state_);
    }
    std::unique_lock lock(mutex_);
    return changed_.wait_until(lock, time, [&] { return holds(state_); });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  VirtualTime::Waiting waiting_;  // in virtual time
  State state_{};
};

}  // namespace tandem

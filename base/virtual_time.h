// Virtual time. Threads are fibers then: they take turns on one thread of the system. A fiber runs
// until it waits; then the next one runs. When all of them wait, the clock jumps to the earliest
// time that one of them waits for. So computing takes no time unless a fiber says so
// (VirtualTime::work), waiting costs none, and a run repeats to the nanosecond.
//
// Within in_virtual_time(), Clock, Monitor and start_thread() work in virtual time. Code that reads
// the clock and blocks only there need not know in which time it runs.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <queue>
#include <tuple>
#include <vector>

#include "base/clock.h"

namespace tandem {

// Runs `body` as the first fiber, on the calling thread. Returns when all fibers have ended, and
// rethrows what `body` throws. The clock begins at 0. If all fibers wait for each other, the first
// one's wait throws std::logic_error. Throws UserError if this build has no fibers.
void in_virtual_time(const std::function<void()>& body);
bool has_virtual_time();

// The fibers of a thread, and their clock.
class VirtualTime {
 public:
  struct Fiber;
  // Fibers that wait for the same change, in the order in which they began to.
  using Waiting = std::vector<Fiber*>;

  // That of the calling thread; null in real time.
  static VirtualTime* here() { return here_; }

  // The calling fiber works for this long. It may still run ahead of the others: it lets them catch
  // up when it next waits for, changes or reads what they share.
  void work(Clock::duration duration) { own_now_ += duration; }
  // Lets the others catch up. Call it before using what fibers share.
  void meet() {
    if (own_now_ > now_) wait_until(own_now_);
  }
  void wait_until(Clock::time_point time);

  // Waits for wake() or until `time`.
  void wait(Waiting& waiting, Clock::time_point time = Clock::time_point::max());
  // Lets all of them run, after the calling fiber.
  void wake(Waiting& waiting);

  // Calls action(of) at this time, between two fibers. It must not wait. Actions of equal times are
  // called in the order in which they were scheduled.
  using Action = void (*)(void* of);
  void schedule(Clock::time_point time, Action action, void* of);

  // How often a fiber has continued or an action was called.
  std::int64_t events() const { return events_; }

  // The fiber stays valid until in_virtual_time() returns.
  Fiber& start(std::function<void()> body);
  void join(Fiber& fiber);

 private:
  friend void in_virtual_time(const std::function<void()>& body);
  VirtualTime();
  ~VirtualTime();
  void run();
  Fiber* next();
  void resume(Fiber& fiber);
  void suspend();
  void make_ready(Fiber& fiber);

  // Calls an action, or ends a fiber's wait if its time has come. Of equal times, the one that was
  // set first comes first.
  struct Timer {
    Clock::time_point time;
    std::uint64_t number;
    Action action;  // null: `of` is a fiber
    void* of;

    bool operator>(const Timer& other) const {
      return std::tie(time, number) > std::tie(other.time, other.number);
    }
  };
  void arm(Fiber& fiber);
  void ring(Fiber& fiber);

  static inline thread_local constinit VirtualTime* here_ = nullptr;

  Clock::time_point now_{};
  Clock::time_point own_now_{};  // of the fiber that runs
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::size_t ended_ = 0;  // of them
  Fiber* current_ = nullptr;
  std::deque<Fiber*> ready_;
  std::priority_queue<Timer, std::vector<Timer>, std::greater<>> timers_;
  std::uint64_t timers_set_ = 0;
  std::int64_t events_ = 0;
};

}  // namespace tandem

#include "base/virtual_time.h"

#include <cxxabi.h>

#include <algorithm>
#include <boost/context/fiber.hpp>
#include <boost/context/preallocated.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>
#include <cstring>
#include <exception>
#include <utility>

#include "base/error.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#elif defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace tandem {
namespace {

// Enough for strategies and transports. Only pages that are used take memory.
constexpr std::size_t kStackBytes = 256 << 10;
constexpr auto kForever = Clock::time_point::max();

// Which exceptions are being handled. The C++ runtime keeps that per thread, but a fiber may wait
// in a catch block.
struct Handled {
  void* caught = nullptr;
  unsigned int uncaught = 0;
};
void swap_handled(Handled& other) {
  auto* here = static_cast<void*>(abi::__cxa_get_globals());
  Handled now;
  std::memcpy(&now, here, sizeof now);
  std::memcpy(here, &other, sizeof other);
  other = now;
}

// Tells sanitizers which stack is in use.
struct Stack {
#if defined(__SANITIZE_ADDRESS__)
  const void* bottom = nullptr;
  std::size_t bytes = 0;
  void* saved = nullptr;
  void set(void* top, std::size_t size) {
    bottom = static_cast<std::byte*>(top) - size;
    bytes = size;
    __asan_unpoison_memory_region(bottom, bytes);  // another stack may have been here
  }
  // Call leave() before a switch to another stack, and arrived() after a switch to this one.
  void leave(const Stack& to, bool forever = false) {
    __sanitizer_start_switch_fiber(forever ? nullptr : &saved, to.bottom, to.bytes);
  }
  void arrived(Stack& from) { __sanitizer_finish_switch_fiber(saved, &from.bottom, &from.bytes); }
  void forget() {}
#elif defined(__SANITIZE_THREAD__)
  void* fiber = nullptr;
  void set(void*, std::size_t) { fiber = __tsan_create_fiber(0); }
  void leave(const Stack& to, bool = false) {
    fiber = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(to.fiber, 0);
  }
  void arrived(const Stack&) {}
  void forget() { __tsan_destroy_fiber(fiber); }
#else
  void set(void*, std::size_t) {}
  void leave(const Stack&, bool = false) {}
  void arrived(const Stack&) {}
  void forget() {}
#endif
};

}  // namespace

struct VirtualTime::Fiber {
  std::function<void()> body;
  std::exception_ptr failure;  // what body() threw

  boost::context::fiber self;       // while it does not run
  boost::context::fiber scheduler;  // while it runs
  Stack stack, scheduler_stack;
  Handled handled;

  bool ended = false;
  bool forever = false;                // its wait would never end
  Waiting* waiting = nullptr;          // where it waits
  Clock::time_point until = kForever;  // when its wait ends in any case
  // Of its timer. Most waits end before their time. A fiber keeps its timer for its next wait, so
  // that there are not many timers.
  Clock::time_point armed = kForever;
  Waiting joining;  // fibers that wait until it has ended
};

bool has_virtual_time() { return true; }

void in_virtual_time(const std::function<void()>& body) {
  require(!VirtualTime::here(), "virtual time within virtual time");
  VirtualTime time;
  const VirtualTime::Fiber& first = time.start(body);
  time.run();
  if (first.failure) std::rethrow_exception(first.failure);
}

VirtualTime::VirtualTime() {
  here_ = this;
  Clock::simulated = &own_now_;
}

VirtualTime::~VirtualTime() {
  here_ = nullptr;
  Clock::simulated = nullptr;
}

VirtualTime::Fiber& VirtualTime::start(std::function<void()> body) {
  meet();
  Fiber& fiber = *fibers_.emplace_back(std::make_unique<Fiber>());
  fiber.body = std::move(body);
  const auto live = [this, &fiber](boost::context::fiber&& scheduler) {
    fiber.scheduler = std::move(scheduler);
    fiber.stack.arrived(fiber.scheduler_stack);
    try {
      fiber.body();
      meet();
    } catch (...) {
      fiber.failure = std::current_exception();
    }
    fiber.ended = true;
    fiber.stack.leave(fiber.scheduler_stack, true);
    return std::move(fiber.scheduler);
  };
  boost::context::protected_fixedsize_stack stacks(kStackBytes);
  const boost::context::stack_context memory = stacks.allocate();
  fiber.stack.set(memory.sp, memory.size);
  const boost::context::preallocated place(memory.sp, memory.size, memory);
  fiber.self = boost::context::fiber(std::allocator_arg, place, stacks, live);
  ready_.push_back(&fiber);
  return fiber;
}

void VirtualTime::join(Fiber& fiber) {
  meet();
  while (!fiber.ended) wait(fiber.joining);
}

void VirtualTime::run() {
  while (Fiber* fiber = next()) {
    resume(*fiber);
    if (!fiber->ended) continue;
    ++ended_;
    fiber->body = nullptr;
    fiber->stack.forget();
    wake(fiber->joining);
    // Like a thread, a fiber must not let an exception out.
    if (fiber->failure && fiber != fibers_.front().get()) std::terminate();
  }
}

// The fiber that runs next; null when all have ended.
VirtualTime::Fiber* VirtualTime::next() {
  while (ready_.empty() && !timers_.empty()) {
    const Timer timer = timers_.top();
    timers_.pop();
    if (timer.action) {
      now_ = own_now_ = timer.time;
      ++events_;
      timer.action(timer.of);
      continue;
    }
    now_ = timer.time;
    ring(*static_cast<Fiber*>(timer.of));
  }
  if (ready_.empty()) {
    if (ended_ == fibers_.size()) return nullptr;
    Fiber& first = *fibers_.front();
    require(!first.ended, "all fibers wait for each other");
    first.forever = true;
    std::erase(*first.waiting, &first);
    make_ready(first);
  }
  Fiber* const fiber = ready_.front();
  ready_.pop_front();
  return fiber;
}

void VirtualTime::make_ready(Fiber& fiber) {
  fiber.waiting = nullptr;
  fiber.until = kForever;
  ready_.push_back(&fiber);
}

void VirtualTime::resume(Fiber& fiber) {
  ++events_;
  current_ = &fiber;
  own_now_ = now_;
  swap_handled(fiber.handled);
  fiber.scheduler_stack.leave(fiber.stack);
  fiber.self = std::move(fiber.self).resume();
  fiber.scheduler_stack.arrived(fiber.stack);
  swap_handled(fiber.handled);
  current_ = nullptr;
}

void VirtualTime::suspend() {
  Fiber& fiber = *current_;
  fiber.stack.leave(fiber.scheduler_stack);
  fiber.scheduler = std::move(fiber.scheduler).resume();
  fiber.stack.arrived(fiber.scheduler_stack);
}

void VirtualTime::wait_until(Clock::time_point time) {
  Waiting nobody_wakes;
  if (time > now_) wait(nobody_wakes, time);
}

void VirtualTime::wait(Waiting& waiting, Clock::time_point time) {
  Fiber& fiber = *current_;
  fiber.waiting = &waiting;
  waiting.push_back(&fiber);
  fiber.until = std::max(time, now_);
  arm(fiber);
  suspend();
  require(!std::exchange(fiber.forever, false), "all fibers wait for each other");
}

// Sets a timer unless the fiber has one that rings in time.
void VirtualTime::arm(Fiber& fiber) {
  if (fiber.until >= fiber.armed) return;
  fiber.armed = fiber.until;
  timers_.push({fiber.until, timers_set_++, nullptr, &fiber});
}

// A fiber's timer may ring after the wait it was set for.
void VirtualTime::ring(Fiber& fiber) {
  if (fiber.armed == now_) fiber.armed = kForever;
  if (!fiber.waiting) return;
  if (fiber.until > now_) return arm(fiber);
  std::erase(*fiber.waiting, &fiber);
  make_ready(fiber);
}

void VirtualTime::schedule(Clock::time_point time, Action action, void* of) {
  timers_.push({std::max(time, now_), timers_set_++, action, of});
}

void VirtualTime::wake(Waiting& waiting) {
  for (Fiber* fiber : waiting) make_ready(*fiber);
  waiting.clear();
}

}  // namespace tandem

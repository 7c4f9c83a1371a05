// A queue that transfers ownership from one thread to another. put() gives an item away, and take()
// waits for the oldest item. A thread that fails closes the queue with its exception, and take() on
// the other side rethrows it.
#pragma once

#include <deque>
#include <exception>
#include <optional>
#include <utility>

#include "base/monitor.h"

namespace tandem {

template <class T>
class BlockingQueue {
 public:
  // An item put into a closed queue is dropped: take() must not return it in place of the failure.
  void put(T item) {
    shared_.change([&](State& state) {
      if (!state.closed) state.items.push_back(std::move(item));
    });
  }

  // Puts the result of f(), or closes the queue with the exception that f throws.
  template <class F>
  void put_result_of(F&& f) {
    try {
      put(f());
    } catch (...) {
      close(std::current_exception());
    }
  }

  // Ends the queue: no more items will come. `reason` is the cause, or null.
  void close(std::exception_ptr reason = nullptr) {
    shared_.change([&](State& state) {
      if (!state.closed) state.reason = std::move(reason);
      state.closed = true;
    });
  }

  // Waits for the oldest item. Returns nothing once the queue is empty and closed without a reason.
  std::optional<T> take_if_open() {
    return shared_.wait(ready, [](State& state) -> std::optional<T> {
      if (!state.items.empty()) {
        std::optional<T> item(std::move(state.items.front()));
        state.items.pop_front();
        return item;
      }
      if (state.reason) std::rethrow_exception(state.reason);
      return std::nullopt;
    });
  }

  // Waits until there is an item, the queue is closed, or `time`. Returns whether take() would
  // return at once.
  bool wait_until(Clock::time_point time) {
    look_for_a_moment([&] { return shared_.look(ready); }, time);
    return shared_.wait_until(time, ready);
  }

  // Like take_if_open(), for a queue that is never closed without a reason.
  T take() { return std::move(take_if_open().value()); }

 private:
  struct State {
    std::deque<T> items;
    bool closed = false;
    std::exception_ptr reason;
  };
  static bool ready(const State& state) { return state.closed || !state.items.empty(); }
  Monitor<State> shared_;
};

}  // namespace tandem

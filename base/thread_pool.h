// The compute threads of one worker. A job is a number of independent tiles; threads pick tiles
// until none is left. The tiles depend only on the shape of the work, so results do not depend on
// the number of threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "base/function_ref.h"

namespace tandem {

class ThreadPool {
 public:
  using Body = FunctionRef<void(std::int64_t tile)>;

  // The calling thread of run() is one of the `threads`. Throws SystemError if they cannot be
  // started.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(helpers_.size()) + 1; }

  // Calls body(0 … tiles-1), each once, in any order; returns when all are done and rethrows the
  // first exception. One run() at a time; bodies must not call run().
  void run(std::int64_t tiles, Body body);

  // Splits [0, count) into pieces of `grain` and calls body(begin, end) for each.
  template <class F>
  void run_ranges(std::int64_t count, std::int64_t grain, F&& body) {
    run((count + grain - 1) / grain, [&](std::int64_t tile) {
      const std::int64_t begin = tile * grain;
      body(begin, begin + grain < count ? begin + grain : count);
    });
  }

 private:
  void stop();
  void help(std::stop_token token);
  void try_one_tile(std::uint64_t& ticket);
  void wait_until_done();

  // The current job. `ticket_` holds the job's number in its high half and the tiles not yet picked
  // in its low half: picking one is a compare-and-swap that fails once the job is over, so a late
  // thread can never touch the next job by mistake.
  const Body* body_ = nullptr;
  std::uint32_t tiles_ = 0;
  std::atomic<std::uint64_t> ticket_ = 0;
  std::atomic<std::uint32_t> job_ = 0;   // helpers wait on this
  std::atomic<std::uint32_t> left_ = 0;  // tiles not done; the caller waits on this
  std::mutex failure_mutex_;
  std::exception_ptr failure_;

  std::vector<std::jthread> helpers_;
};

// Like pool->run_ranges(). A single call if the pool is null or there is only one piece.
template <class F>
void run_ranges(ThreadPool* pool, std::int64_t count, std::int64_t grain, F&& body) {
  if (pool && count > grain)
    pool->run_ranges(count, grain, body);
  else if (count > 0)
    body(0, count);
}

}  // namespace tandem

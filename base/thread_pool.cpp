#include "base/thread_pool.h"

#include <chrono>
#include <system_error>
#include <utility>

#include "base/error.h"

namespace tandem {
namespace {

// The gap between two jobs of a training step is a few microseconds, less than it takes to wake a
// sleeping thread. So waiting first yields the core again and again for a short while (another
// runnable thread gets it), and only then sleeps.
constexpr auto kYieldFor = std::chrono::microseconds(100);

template <class Ready>
bool yield_until(Ready ready) {
  const auto deadline = std::chrono::steady_clock::now() + kYieldFor;
  do {
    if (ready()) return true;
    std::this_thread::yield();
  } while (std::chrono::steady_clock::now() < deadline);
  return ready();
}

constexpr std::uint64_t job_of(std::uint64_t ticket) { return ticket >> 32; }
constexpr std::uint32_t unpicked_in(std::uint64_t ticket) {
  return static_cast<std::uint32_t>(ticket);
}

}  // namespace

ThreadPool::ThreadPool(int threads) {
  require(threads >= 1, "a thread pool needs at least one thread, not {}", threads);
  try {
    for (int i = 1; i < threads; ++i)
      helpers_.emplace_back([this](std::stop_token token) { help(std::move(token)); });
  } catch (const std::system_error& e) {
    stop();
    throw SystemError("cannot start {} compute threads: {}", threads, e.what());
  }
}

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::stop() {
  for (auto& helper : helpers_) helper.request_stop();
  job_.fetch_add(1, std::memory_order_release);
  job_.notify_all();
}

void ThreadPool::run(std::int64_t tiles, Body body) {
  if (tiles <= 1 || helpers_.empty()) {
    for (std::int64_t tile = 0; tile < tiles; ++tile) body(tile);
    return;
  }
  require(tiles <= 0xffffffff, "{} tiles are too many for one job", tiles);
  body_ = &body;
  tiles_ = static_cast<std::uint32_t>(tiles);
  failure_ = nullptr;
  left_.store(tiles_, std::memory_order_relaxed);
  const std::uint64_t job = job_of(ticket_.load(std::memory_order_relaxed)) + 1;
  std::uint64_t ticket = job << 32 | tiles_;
  ticket_.store(ticket, std::memory_order_release);
  job_.fetch_add(1, std::memory_order_release);
  job_.notify_all();

  while (unpicked_in(ticket) > 0) try_one_tile(ticket);
  wait_until_done();
  if (failure_) std::rethrow_exception(failure_);
}

// Tries to pick the next tile of the job in `ticket`, which is brought up to date either way.
void ThreadPool::try_one_tile(std::uint64_t& ticket) {
  if (!ticket_.compare_exchange_weak(ticket, ticket - 1, std::memory_order_acq_rel,
                                     std::memory_order_acquire))
    return;
  // The tile is ours, so the job cannot end before it is done: body_ and tiles_ stay valid.
  const std::uint32_t tile = tiles_ - unpicked_in(ticket);
  ticket -= 1;
  try {
    (*body_)(tile);
  } catch (...) {
    const std::lock_guard lock(failure_mutex_);
    if (!failure_) failure_ = std::current_exception();
  }
  if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) left_.notify_one();
}

void ThreadPool::wait_until_done() {
  const auto done = [this] { return left_.load(std::memory_order_acquire) == 0; };
  if (yield_until(done)) return;
  while (!done()) {
    const std::uint32_t left = left_.load(std::memory_order_acquire);
    if (left != 0) left_.wait(left, std::memory_order_acquire);
  }
}

void ThreadPool::help(std::stop_token token) {
  std::uint32_t seen = 0;
  while (!token.stop_requested()) {
    std::uint64_t ticket = ticket_.load(std::memory_order_acquire);
    while (unpicked_in(ticket) > 0) try_one_tile(ticket);
    if (!yield_until([&] { return job_.load(std::memory_order_acquire) != seen; }))
      job_.wait(seen, std::memory_order_acquire);
    seen = job_.load(std::memory_order_acquire);
  }
}

}  // namespace tandem

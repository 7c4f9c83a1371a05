#include "base/thread_pool.h"

#include <doctest/doctest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

using namespace tandem;

TEST_CASE("thread pool: every tile is done once, for any number of threads and tiles") {
  for (int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    CHECK(pool.threads() == threads);
    for (std::int64_t tiles : {0, 1, 2, 7, 100}) {
      std::vector<std::atomic<int>> done(static_cast<std::size_t>(tiles));
      pool.run(tiles, [&](std::int64_t tile) { ++done[static_cast<std::size_t>(tile)]; });
      for (const auto& count : done) CHECK(count == 1);
    }
  }
}

TEST_CASE("thread pool: many short jobs, with sleeps between some of them") {
  ThreadPool pool(3);
  std::int64_t expected = 0;
  std::atomic<std::int64_t> sum = 0;
  for (std::int64_t job = 0; job < 5000; ++job) {
    const std::int64_t tiles = job % 5;
    pool.run(tiles, [&](std::int64_t tile) { sum += tile + job; });
    for (std::int64_t tile = 0; tile < tiles; ++tile) expected += tile + job;
    REQUIRE(sum == expected);
    // Long enough for the helpers to fall asleep: waking them is part of what is tested.
    if (job % 1000 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

TEST_CASE("thread pool: ranges cover all elements without overlap") {
  ThreadPool pool(2);
  std::vector<std::atomic<int>> done(1001);
  pool.run_ranges(1001, 100, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) ++done[static_cast<std::size_t>(i)];
  });
  for (const auto& count : done) CHECK(count == 1);
}

TEST_CASE("thread pool: an exception reaches the caller, and the pool stays usable") {
  ThreadPool pool(2);
  for (std::int64_t bad : {0, 9})
    CHECK_THROWS_AS(pool.run(10,
                             [&](std::int64_t tile) {
                               if (tile == bad) throw std::runtime_error("tile");
                             }),
                    std::runtime_error);
  std::atomic<int> done = 0;
  pool.run(10, [&](std::int64_t) { ++done; });
  CHECK(done == 10);
}

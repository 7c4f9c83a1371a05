#include "data/sampler.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

using namespace tandem;

TEST_CASE("sampler: parts cover everything once and differ by at most one") {
  for (const std::int64_t count : {0, 1, 7, 100, 101})
    for (const std::int64_t parts : {1, 2, 3, 16}) {
      std::int64_t next = 0;
      for (std::int64_t i = 0; i < parts; ++i) {
        const Part part = part_of(count, parts, i);
        CHECK(part.begin == next);
        CHECK(part.size() >= count / parts);
        CHECK(part.size() <= count / parts + 1);
        next = part.end;
      }
      CHECK(next == count);
    }
}

TEST_CASE("sampler: an epoch is a permutation that depends on seed and epoch alone") {
  const auto order = shuffled_order(1000, 1, 0);
  CHECK(order == shuffled_order(1000, 1, 0));
  CHECK(order != shuffled_order(1000, 1, 1));
  CHECK(order != shuffled_order(1000, 2, 0));
  auto sorted = order;
  std::ranges::sort(sorted);
  for (std::int64_t i = 0; i < 1000; ++i) CHECK(sorted[static_cast<std::size_t>(i)] == i);
}

TEST_CASE("sampler: the workers' parts of a batch are the batch, in order") {
  for (const bool drop_last : {false, true}) {
    const BatchPlan whole{103, 10, drop_last};
    CHECK(whole.batches_per_epoch() == (drop_last ? 10 : 11));
    for (std::int64_t b = 0; b < whole.batches_per_epoch(); ++b) {
      const Part batch = whole.part(b);
      CHECK(batch.size() == (b == 10 ? 3 : 10));
      std::int64_t next = batch.begin;
      for (std::int64_t rank = 0; rank < 4; ++rank) {
        const Part part = BatchPlan{103, 10, drop_last, 4, rank}.part(b);
        CHECK(part.begin == next);
        next = part.end;
      }
      CHECK(next == batch.end);
    }
  }
}

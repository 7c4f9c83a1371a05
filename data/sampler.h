// Which samples make up which batch. A pure function of the seed, the epoch and the iteration, so
// every worker knows its part without asking, and a resumed run continues at the same sample.
#pragma once

#include <cstdint>
#include <vector>

namespace tandem {

// Part `i` of `count` items divided into `parts`. Parts are consecutive, and their sizes differ by
// at most one.
struct Part {
  std::int64_t begin, end;
  std::int64_t size() const { return end - begin; }
};
Part part_of(std::int64_t count, std::int64_t parts, std::int64_t i);

// 0 … size-1 in the order of an epoch: shuffled by (seed, epoch).
std::vector<std::int64_t> shuffled_order(std::int64_t size, std::uint64_t seed, std::int64_t epoch);

// Divides an epoch into global batches, and a global batch into one consecutive part per worker. So
// in every iteration p workers together see exactly the samples that one worker would see.
struct BatchPlan {
  std::int64_t samples;
  std::int64_t batch;  // global
  bool drop_last;      // drop a short last batch; otherwise use it
  std::int64_t workers = 1;
  std::int64_t rank = 0;

  std::int64_t batches_per_epoch() const;
  // Positions in the epoch's order of this worker's part of batch `b`.
  Part part(std::int64_t b) const;
};

}  // namespace tandem

// Which samples make up which batch. A pure function of the seed, the epoch and the iteration, so
// that every worker knows its part without asking, and a resumed run continues in place.
#pragma once

#include <cstdint>
#include <vector>

namespace tandem {

// Part `i` of `count` things shared by `parts`: consecutive, sizes differing by at most one.
struct Part {
  std::int64_t begin, end;
  std::int64_t size() const { return end - begin; }
};
Part part_of(std::int64_t count, std::int64_t parts, std::int64_t i);

// 0 … size-1 in the order of an epoch: shuffled by (seed, epoch).
std::vector<std::int64_t> shuffled_order(std::int64_t size, std::uint64_t seed, std::int64_t epoch);

// Cuts epochs into global batches and a global batch into one consecutive part per worker. Thus p
// workers see in every iteration exactly the samples that one worker would see.
struct BatchPlan {
  std::int64_t samples;
  std::int64_t batch;  // global
  bool drop_last;      // leave out a short last batch; else it is used, short
  std::int64_t workers = 1;
  std::int64_t rank = 0;

  std::int64_t batches_per_epoch() const;
  // Positions in the epoch's order of this worker's part of batch `b`.
  Part part(std::int64_t b) const;
};

}  // namespace tandem

// How long a run is, and when it tests.
#pragma once

#include <algorithm>
#include <cstdint>

#include "data/dataset.h"
#include "train/options.h"

namespace tandem {

struct Length {
  // `done`: iterations before a checkpoint that the run continues from.
  Length(const DataSplit& data, const TrainOptions& options, std::int64_t done = 0);

  std::int64_t done;
  std::int64_t iterations, iterations_per_epoch, iterations_per_test;
  std::int64_t warmup;  // iterations of d-sync before the pipeline opens
  // The first iterations allocate memory and let libraries choose algorithms. Their times are not
  // counted. After a checkpoint there are as many.
  std::int64_t cold;
  std::int64_t cold_until() const { return done + cold; }

  // The epoch of an iteration; both are counted from 1.
  std::int64_t epoch_of(std::int64_t t) const { return (t - 1) / iterations_per_epoch + 1; }
  bool tests_at(std::int64_t t) const { return t % iterations_per_test == 0 || t == iterations; }
  std::int64_t next_test(std::int64_t after) const {
    return std::min((after / iterations_per_test + 1) * iterations_per_test, iterations);
  }
  // Whether every test is at the end of an epoch.
  bool tests_by_epochs() const {
    return iterations_per_test == iterations_per_epoch && iterations % iterations_per_epoch == 0;
  }
};

}  // namespace tandem

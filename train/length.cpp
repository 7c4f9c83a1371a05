#include "train/length.h"

#include <algorithm>

#include "data/loader.h"
#include "dist/strategies.h"

namespace tandem {

Length::Length(const DataSplit& data, const TrainOptions& o, std::int64_t before) : done(before) {
  const BatchPlan plan{.samples = data.train->size(), .batch = o.batch, .drop_last = true};
  // With a set smaller than a batch nothing is trained, only tested.
  iterations_per_epoch = std::max<std::int64_t>(1, plan.batches_per_epoch());
  iterations = o.iterations > 0 ? o.iterations : o.epochs * iterations_per_epoch;
  iterations_per_test = o.test_every > 0 ? o.test_every : iterations_per_epoch;
  warmup = strategy_named(o.algo).warmup(o.algo_options, iterations_per_epoch);
  constexpr std::int64_t kCold = 8;
  cold = std::min(kCold, iterations / 2);
  // Iterations that measure for a plan or a prediction do not count either.
  const std::int64_t measured = strategy_named(o.algo).measures_until;
  if (iterations > measured) cold = std::max(cold, measured);
}

}  // namespace tandem

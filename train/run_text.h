// What a run tells its user when it begins, and when a signal ends it.
#pragma once

#include <cstdint>
#include <string>

#include "data/dataset.h"
#include "train/options.h"
#include "train/summary.h"

namespace tandem {

// `done`: iterations before a checkpoint that the run continues from.
std::string what_runs(const Summary& summary, const DataSplit& data, std::int64_t done);

std::string after_interruption(const TrainOptions& options, std::int64_t iterations);

}  // namespace tandem

// The training loop that all applications and all algorithms share.
#pragma once

#include "train/options.h"
#include "train/summary.h"
#include "train/task.h"

namespace tandem {

// Trains on all ranks, tests regularly, shows progress, and writes the files that the options name.
// Under mpiexec only rank 0 prints, writes and returns the results. Throws UserError for invalid
// options (check_options.h) before reading any data.
Summary train(const Task& task, const TrainOptions& options);

}  // namespace tandem

// The training loop that all applications and all algorithms share.
#pragma once

#include "train/options.h"
#include "train/summary.h"
#include "train/task.h"

namespace tandem {

// Trains on all ranks, tests now and then, shows progress, and writes the files that the
// options name. Under mpiexec only rank 0 shows, writes and returns what the run came to. Throws
// UserError for options that make no sense (check_options.h) before anything is read.
Summary train(const Task& task, const TrainOptions& options);

}  // namespace tandem

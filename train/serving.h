// A parameter server's part of a run.
#pragma once

#include <vector>

#include "data/dataset.h"
#include "dist/agreement.h"
#include "dist/communication.h"
#include "dist/compress/compressor.h"
#include "train/options.h"
#include "train/resume.h"
#include "train/trainer.h"

namespace tandem {

// Serves on the communication thread, and pauses while the workers test. Returns the number of the
// signal that has stopped the run, or 0.
int run_server(const Task& task, const DataSplit& data, const TrainOptions& options,
               const Compressor& compressor, Communication& communication,
               const std::vector<Trait>& made_for, Resumed resumed);

}  // namespace tandem

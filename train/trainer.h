// The training loop that all applications and all algorithms share.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "data/dataset.h"
#include "layers/layer.h"
#include "train/options.h"
#include "train/summary.h"

namespace tandem {

// What an application adds to the loop.
struct Task {
  std::string app;
  // Makes the model for images [h, w, c], with initial weights that depend on the seed alone. The
  // model maps [n, h, w, c] to logits [n, classes].
  std::function<std::unique_ptr<Layer>(const Shape& image, std::int64_t classes,
                                       std::uint64_t seed)>
      model;
  std::function<DataSplit()> data;
  std::string net = {};       // the model's name for a person; empty: the app's
  std::string features = {};  // a file with the fixed weights; empty: as `model` made them
};

// Trains on all ranks, tests regularly, shows progress, and writes the files that the options name.
// Under mpiexec only rank 0 prints, writes and returns the results. Throws UserError for invalid
// options (check_options.h) before reading any data.
Summary train(const Task& task, const TrainOptions& options);

}  // namespace tandem

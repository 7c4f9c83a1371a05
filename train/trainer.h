// The training loop that all applications and all algorithms share.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "data/dataset.h"
#include "data/loader.h"
#include "layers/layer.h"
#include "train/options.h"
#include "train/summary.h"

namespace tandem {

// What an application adds to the loop.
struct Task {
  std::string app;
  // The model with its initial weights, which depend on the seed alone. Takes [n, h, w, c] images
  // and gives [n, classes] logits.
  std::function<std::unique_ptr<Layer>(std::uint64_t seed)> model;
  DataSplit data;
  Augment augment = {};
};

// Trains, tests after every epoch, shows progress, and writes the files that the options name.
Summary train(const Task& task, const TrainOptions& options);

}  // namespace tandem

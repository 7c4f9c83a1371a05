// What an application adds to the training loop.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "data/dataset.h"
#include "layers/layer.h"

namespace tandem {

struct Task {
  std::string app;
  // The model with its initial weights, which depend on the seed alone. Takes [n, h, w, c] images
  // and gives [n, classes] logits.
  std::function<std::unique_ptr<Layer>(std::uint64_t seed)> model;
  std::function<DataSplit()> data;
};

}  // namespace tandem

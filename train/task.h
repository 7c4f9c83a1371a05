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
  // Makes the model for images [h, w, c], with initial weights that depend on the seed alone. The
  // model maps [n, h, w, c] to logits [n, classes].
  std::function<std::unique_ptr<Layer>(const Shape& image, std::int64_t classes,
                                       std::uint64_t seed)>
      model;
  std::function<DataSplit()> data;
  std::string net = {};       // the model's name for a person; empty: the app's
  std::string features = {};  // a file with the fixed weights; empty: as `model` made them
};

}  // namespace tandem

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
  // The model for images [h, w, c], with its initial weights, which depend on the seed alone. Takes
  // [n, h, w, c] and gives [n, classes] logits.
  std::function<std::unique_ptr<Layer>(const Shape& image, std::int64_t classes,
                                       std::uint64_t seed)>
      model;
  std::function<DataSplit()> data;
  std::string net = {};       // the model's name for a person; empty: the app's
  std::string features = {};  // a file with the fixed weights; empty: as `model` made them
};

}  // namespace tandem

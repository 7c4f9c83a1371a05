// What the fixed layers of a net make of a data set. They never change, so their outputs are
// computed once, and training reads those in place of the images. Later runs with the same layers
// and the same data find them in the cache folder (see tensor/memo_file.h).
#pragma once

#include <cstdint>
#include <functional>

#include "autograd/parameter.h"
#include "autograd/tape.h"
#include "data/dataset.h"

namespace tandem {

struct FixedLayers {
  const ParameterSet& parameters;  // on the CPU, so that all ranks compute the same bits
  // What they make of normalised images [n, h, w, c]: [n, size].
  std::function<Var(Tape&, const Var&)> forward;
  std::int64_t size = 0;
};

// `images` without augmentation, as samples [1, 1, size] of f32. `announce` is called before a
// computation that may take a while, with the number of images.
DataSplit with_fixed_features(const DataSplit& images, const FixedLayers& layers,
                              const std::function<void(std::int64_t)>& announce);

}  // namespace tandem

// The outputs of a net's fixed layers for a data set. These layers never change, so their outputs
// are computed once, and training reads them instead of the images. Later runs with the same layers
// and data find them in the cache folder (see tensor/memo_file.h).
#pragma once

#include <cstdint>
#include <functional>

#include "autograd/parameter.h"
#include "autograd/tape.h"
#include "data/dataset.h"

namespace tandem {

struct FixedLayers {
  const ParameterSet& parameters;  // on the CPU, so that all ranks compute the same bits
  // Maps normalised images [n, h, w, c] to [n, size].
  std::function<Var(Tape&, const Var&)> forward;
  std::int64_t size = 0;
};

// Ignores augmentation. The samples are [1, 1, size] of f32. `announce` is called with the number
// of images before a computation that may take a while.
DataSplit with_fixed_features(const DataSplit& images, const FixedLayers& layers,
                              const std::function<void(std::int64_t)>& announce);

}  // namespace tandem

// Generated coloured objects with the image shape of CIFAR: always available, learnable, not
// trivial. An image shows an object of some shape, colour and texture, shifted, rotated and scaled,
// on a cluttered background of any colour, with varying light and noise.
#pragma once

#include <cstdint>
#include <memory>

#include "data/dataset.h"

namespace tandem {

// `count` images [32, 32, 3]. With 10 classes, a class is one of 5 shapes in one of 2 textures;
// with 100, one of 10 shapes in one of 2 textures and 5 colours, which overlap a little. The same
// seed draws the same images everywhere; different seeds draw different ones.
std::shared_ptr<const InMemoryDataset> synthetic_objects(std::int64_t count, int classes,
                                                         std::uint64_t seed);

}  // namespace tandem

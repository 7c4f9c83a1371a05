// Generated images. The digits and objects are always available, learnable, and not trivial; the
// same seed draws the same images everywhere, and different seeds draw different ones.
#pragma once

#include <cstdint>
#include <memory>

#include "data/dataset.h"

namespace tandem {

// `count` images [28, 28, 1] in ten classes. Every image shows the strokes of a digit, shifted,
// rotated, slanted and scaled, with varying line width and noise.
std::shared_ptr<const InMemoryDataset> synthetic_digits(std::int64_t count, std::uint64_t seed);

// `count` images [32, 32, 3], the shape of CIFAR's. An image shows an object of some shape, colour
// and texture, shifted, rotated and scaled, on a cluttered background of any colour, with varying
// light and noise. With 10 classes, a class is one of 5 shapes in one of 2 textures; with 100, one
// of 10 shapes in one of 2 textures and 5 colours, which overlap a little.
std::shared_ptr<const InMemoryDataset> synthetic_objects(std::int64_t count, int classes,
                                                         std::uint64_t seed);

// Images with the shape of ImageNet's that cost almost nothing, for measuring speed. As many
// training images and classes as ImageNet has, of image_size × image_size pixels, and a short test.
// Pixels are hashes of (seed, image) with a tint that depends on the class: a net can learn it, but
// its accuracy means nothing. Nothing is stored.
DataSplit synthetic_imagenet(std::int64_t image_size = 224);

}  // namespace tandem

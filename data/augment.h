// How training images are varied, so that the net sees each one differently in every epoch.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "base/random.h"
#include "tensor/shape.h"

namespace tandem {

// Changes an image [height, width, channels] in place, before it is normalised. The random numbers
// belong to (seed, epoch, sample), so they depend neither on the number of workers nor on who
// reads the sample. Called on several threads at once.
using Augment =
    std::function<void(std::span<std::uint8_t> pixels, const Shape& shape, Random& random)>;

// Left becomes right.
void flip_horizontally(std::span<std::uint8_t> pixels, const Shape& shape);

// The augmentation for CIFAR of He et al. (Deep Residual Learning, 2016, section 4.2): `pad` black
// pixels are added on every side, an image of the old size is cut out at random, and every other
// one is flipped.
Augment pad_crop_flip(std::int64_t pad = 4);

}  // namespace tandem

// Random changes to training images, so that the net sees each one differently in every epoch.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "base/random.h"
#include "tensor/shape.h"

namespace tandem {

// Changes an image [height, width, channels] in place, before it is normalised. The random numbers
// are a function of (seed, epoch, sample), so they depend neither on the number of workers nor on
// the reading thread. Called on several threads at once.
using Augment =
    std::function<void(std::span<std::uint8_t> pixels, const Shape& shape, Random& random)>;

// Exchanges left and right.
void flip_horizontally(std::span<std::uint8_t> pixels, const Shape& shape);

// The augmentation for CIFAR of He et al. (Deep Residual Learning, 2016, section 4.2): adds `pad`
// black pixels on every side, crops a random part of the original size, and flips it with
// probability 1/2.
Augment pad_crop_flip(std::int64_t pad = 4);

}  // namespace tandem

// Images in the shape of ImageNet's that cost next to nothing, for measuring speed.
#pragma once

#include <cstdint>

#include "data/dataset.h"

namespace tandem {

// As many training images and classes as ImageNet has, of image_size × image_size pixels, and a
// short test. Pixels are hashes of (seed, image), under a tint that tells the class: there is
// something to learn, but a test says nothing about a net. Nothing is stored.
DataSplit synthetic_imagenet(std::int64_t image_size = 224);

}  // namespace tandem

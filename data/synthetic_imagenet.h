// Images with the shape of ImageNet's that cost almost nothing, for measuring speed.
#pragma once

#include <cstdint>

#include "data/dataset.h"

namespace tandem {

// As many training images and classes as ImageNet has, of image_size × image_size pixels, and a
// short test. Pixels are hashes of (seed, image) with a tint that depends on the class: a net can
// learn it, but its accuracy means nothing. Nothing is stored.
DataSplit synthetic_imagenet(std::int64_t image_size = 224);

}  // namespace tandem

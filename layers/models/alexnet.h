#pragma once

#include <cstdint>
#include <memory>

#include "layers/layer.h"

namespace tandem {

// The two versions of AlexNet, for images of 224 pixels. Other sizes, from 63 pixels on, are
// averaged after the convolutions to the 6 x 6 pixels that 224 give, as torchvision does, so the
// same weights serve for all. Smaller images are a UserError. Parameters are named
// features.0.weight … classifier.6.bias.

// "One weird trick" (Krizhevsky, 2014): 64-192-384-256-256 filters, no groups, no response
// normalisation; what torchvision calls alexnet. 61,100,840 parameters for 1,000 classes.
std::unique_ptr<Layer> alexnet_owt(const Shape& image, std::int64_t classes, std::uint64_t seed);

// As it won in 2012 (Krizhevsky, Sutskever and Hinton): 96-256-384-384-256 filters, with two groups
// in the second, fourth and fifth layer, because the net was spread over two GPUs, and local
// response normalisation after the first two. 60,965,224 parameters for 1,000 classes.
std::unique_ptr<Layer> alexnet_classic(const Shape& image, std::int64_t classes,
                                       std::uint64_t seed);

}  // namespace tandem

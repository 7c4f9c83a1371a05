// A small convolutional net for training tests.
#pragma once

#include <cstdint>
#include <memory>

#include "base/random.h"
#include "layers/batch_norm.h"
#include "layers/conv2d.h"
#include "layers/linear.h"
#include "layers/sequential.h"
#include "layers/simple.h"

namespace tandem::test {

// On the digits: a convolution with batch norm, whose running statistics every worker measures on
// its own, and dropout, whose random numbers are every step's and every worker's own.
inline std::unique_ptr<Layer> small_conv_net(const Shape&, std::int64_t, std::uint64_t seed) {
  const Random random(seed, Purpose::weights);
  auto model = std::make_unique<Sequential>();
  model
      ->add<Conv2d>("0",
                    Conv2d::Options{.in = 1, .out = 8, .window = 3, .convolution = {.stride = 2}},
                    random.split(0))
      .add<BatchNorm2d>("1", 8)
      .add<Relu>("2")
      .add<MaxPool>("3", Pool{})
      .add<Flatten>("4")
      .add<Dropout>("5", 0.3)
      .add<Linear>("6", Linear::Options{.in = 6 * 6 * 8, .out = 10, .image = {6, 6, 8}},
                   random.split(6));
  return model;
}

}  // namespace tandem::test

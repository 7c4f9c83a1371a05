// LeNet-5 in its usual modern form: plain average pools, every filter sees all channels. The loss
// is softmax cross-entropy, which the training loop adds.
#pragma once

#include "layers/conv2d.h"
#include "layers/linear.h"
#include "layers/sequential.h"
#include "layers/simple.h"
#include "scaled_tanh.h"

namespace lenet {

inline std::unique_ptr<Layer> lenet5(const Shape& image, std::int64_t classes, std::uint64_t seed) {
  const Random random(seed, Purpose::weights);
  const Init init = Init::lecun_uniform;  // variance 1/fan_in
  const Pool half{.window = 2, .stride = 2};
  // The shape after the second pool: 5 x 5 pixels for images of 28 x 28.
  const Shape last{(image[0] / 2 - 4) / 2, (image[1] / 2 - 4) / 2, 16};

  auto net = std::make_unique<Sequential>();
  net->add<Conv2d>("c1",
                   Conv2d::Options{.in = image[2],
                                   .out = 6,
                                   .window = 5,
                                   .convolution = {.padding = 2},
                                   .bias = true,
                                   .init = init},
                   random.split(1))
      .add<ScaledTanh>("a1")
      .add<AveragePool>("s2", half)
      .add<Conv2d>("c3",
                   Conv2d::Options{.in = 6, .out = 16, .window = 5, .bias = true, .init = init},
                   random.split(3))
      .add<ScaledTanh>("a3")
      .add<AveragePool>("s4", half)
      .add<Flatten>("flatten")
      .add<Linear>("c5",
                   Linear::Options{.in = last.count(), .out = 120, .init = init, .image = last},
                   random.split(5))
      .add<ScaledTanh>("a5")
      .add<Linear>("f6", 120, 84, init, random.split(6))
      .add<ScaledTanh>("a6")
      .add<Linear>("output", 84, classes, init, random.split(7));
  return net;
}

}  // namespace lenet

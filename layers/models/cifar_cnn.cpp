#include "layers/models/cifar_cnn.h"

#include "layers/conv2d.h"
#include "layers/linear.h"
#include "layers/models/image_size.h"
#include "layers/sequential.h"
#include "layers/simple.h"

namespace tandem {
namespace {

std::unique_ptr<Layer> make(const Shape& image, std::int64_t classes, std::uint64_t seed,
                            Role features) {
  require_image("the CIFAR net", image, 8);
  const Random random(seed, Purpose::weights);
  const auto conv = [&](std::int64_t in, std::int64_t out) {
    return Conv2d::Options{.in = in,
                           .out = out,
                           .window = 5,
                           .convolution = {.padding = 2},
                           .bias = true,
                           .role = features};
  };
  const Pool half{.window = 2, .stride = 2};
  const Shape flat{image[0] / 8, image[1] / 8, 64};

  auto model = std::make_unique<Sequential>();
  model->add<Conv2d>("0", conv(image[2], 32), random.split(0))
      .add<Relu>("1")
      .add<MaxPool>("2", half)
      .add<Conv2d>("3", conv(32, 32), random.split(3))
      .add<Relu>("4")
      .add<AveragePool>("5", half)
      .add<Conv2d>("6", conv(32, 64), random.split(6))
      .add<Relu>("7")
      .add<AveragePool>("8", half)
      .add<Flatten>("9")
      .add<Linear>("10",
                   Linear::Options{.in = flat.count(), .out = 64, .role = features, .image = flat},
                   random.split(10))
      .add<Relu>("11")
      .add<Linear>("12", 64, classes, Init::xavier_normal, random.split(12));
  return model;
}

}  // namespace

std::unique_ptr<Layer> cifar_cnn(const Shape& image, std::int64_t classes, std::uint64_t seed) {
  return make(image, classes, seed, Role::trained);
}

std::unique_ptr<Layer> cifar_convex(const Shape& image, std::int64_t classes, std::uint64_t seed) {
  return make(image, classes, seed, Role::fixed);
}

}  // namespace tandem

#include "layers/models/models.h"

#include "layers/conv2d.h"
#include "layers/linear.h"
#include "layers/models/image_size.h"
#include "layers/simple.h"

namespace tandem {
namespace {

// All layers except the last. `role` is the role of their parameters.
void add_features(Sequential& net, const Shape& image, const Random& random, Role role) {
  require_image("the CIFAR net", image, 8);
  const auto conv = [&](std::int64_t in, std::int64_t out) {
    return Conv2d::Options{.in = in,
                           .out = out,
                           .window = 5,
                           .convolution = {.padding = 2},
                           .bias = true,
                           .role = role};
  };
  const Pool half{.window = 2, .stride = 2};
  const Shape flat{image[0] / 8, image[1] / 8, 64};
  net.add<Conv2d>("0", conv(image[2], 32), random.split(0))
      .add<Relu>("1")
      .add<MaxPool>("2", half)
      .add<Conv2d>("3", conv(32, 32), random.split(3))
      .add<Relu>("4")
      .add<AveragePool>("5", half)
      .add<Conv2d>("6", conv(32, 64), random.split(6))
      .add<Relu>("7")
      .add<AveragePool>("8", half)
      .add<Flatten>("9")
      .add<Linear>(
          "10",
          Linear::Options{
              .in = flat.count(), .out = CifarConvex::kFeatures, .role = role, .image = flat},
          random.split(10))
      .add<Relu>("11");
}

void add_last(Sequential& net, std::int64_t classes, const Random& random) {
  net.add<Linear>("12", CifarConvex::kFeatures, classes, Init::xavier_normal, random.split(12));
}

}  // namespace

std::unique_ptr<Layer> cifar_cnn(const Shape& image, std::int64_t classes, std::uint64_t seed) {
  const Random random(seed, Purpose::weights);
  auto net = std::make_unique<Sequential>();
  add_features(*net, image, random, Role::trained);
  add_last(*net, classes, random);
  return net;
}

CifarConvex::CifarConvex(const Shape& image, std::int64_t classes, std::uint64_t seed) {
  const Random random(seed, Purpose::weights);
  add_features(fixed_, image, random, Role::fixed);
  add_last(last_, classes, random);
}

Var CifarConvex::forward(Tape& tape, const Var& x) {
  const Shape& shape = x.value.shape();
  const bool made = shape[1] == 1 && shape[2] == 1 && shape[3] == kFeatures;
  return last_.forward(tape, made ? flatten(tape, x) : features(tape, x));
}

void CifarConvex::collect(const std::string& prefix, std::vector<ParameterSet::Named>& into) {
  fixed_.collect(prefix, into);
  last_.collect(prefix, into);
}

}  // namespace tandem

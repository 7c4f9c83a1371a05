#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "layers/batch_norm.h"
#include "layers/conv2d.h"
#include "layers/linear.h"
#include "layers/models/image_size.h"
#include "layers/models/models.h"
#include "layers/sequential.h"
#include "layers/simple.h"

namespace tandem {
namespace {

constexpr std::int64_t kLeast = 32;  // pixels, so that one is left after the five pools
constexpr std::int64_t kPooled = 7;  // pixels left there of 224

// Convolutions per stage. The filters are 3×3, and a max pool that halves the image ends a stage.
std::array<int, 5> stages(int depth) {
  switch (depth) {
    case 11:
      return {1, 1, 2, 2, 2};
    case 13:
      return {2, 2, 2, 2, 2};
    case 16:
      return {2, 2, 3, 3, 3};
    default:
      return {2, 2, 4, 4, 4};
  }
}

std::int64_t last_width(const Vgg& net) { return 8 * net.width; }

// The initial values are torchvision's for convolutions: they preserve the variance of gradients.
// Names count all layers, as PyTorch's Sequential does.
std::unique_ptr<Sequential> features(const Vgg& net, std::int64_t channels, const Random& random) {
  const auto& depths = vgg_depths();
  require(std::ranges::find(depths, net.depth) != depths.end(), "there is no such VGG-{}",
          net.depth);
  auto layers = std::make_unique<Sequential>();
  int next = 0;
  std::int64_t width = net.width;
  for (const int convolutions : stages(net.depth)) {
    for (int i = 0; i < convolutions; ++i) {
      const Random r = random.split(static_cast<std::uint64_t>(next));
      layers->add<Conv2d>(std::to_string(next++),
                          Conv2d::Options{.in = channels,
                                          .out = width,
                                          .window = 3,
                                          .convolution = {.padding = 1},
                                          .bias = true,
                                          .init = Init::he_normal_fan_out},
                          r);
      if (net.batch_norm) layers->add<BatchNorm2d>(std::to_string(next++), width);
      layers->add<Relu>(std::to_string(next++));
      channels = width;
    }
    layers->add<MaxPool>(std::to_string(next++), Pool{.window = 2, .stride = 2});
    width = std::min(2 * width, last_width(net));
  }
  return layers;
}

}  // namespace

std::unique_ptr<Layer> vgg(const Vgg& net, const Shape& image, std::int64_t classes,
                           std::uint64_t seed) {
  require_image(fmt::format("VGG-{}", net.depth), image, kLeast);
  const Random random(seed, Purpose::weights);
  const Shape flat{kPooled, kPooled, last_width(net)};
  const Random r = random.split(1);
  auto classifier = std::make_unique<Sequential>();
  classifier
      ->add<Linear>("0", Linear::Options{.in = flat.count(), .out = net.hidden, .image = flat},
                    r.split(0))
      .add<Relu>("1")
      .add<Dropout>("2", 0.5)
      .add<Linear>("3", net.hidden, net.hidden, Init::he_normal, r.split(3))
      .add<Relu>("4")
      .add<Dropout>("5", 0.5)
      .add<Linear>("6", net.hidden, classes, Init::xavier_normal, r.split(6));

  auto model = std::make_unique<Sequential>();
  model->add("features", features(net, image[2], random.split(0)))
      .add<AdaptiveAveragePool>("avgpool", kPooled, kPooled)
      .add<Flatten>("flatten")
      .add("classifier", std::move(classifier));
  return model;
}

std::unique_ptr<Layer> cifar_vgg(const Vgg& net, const Shape& image, std::int64_t classes,
                                 std::uint64_t seed) {
  require_image(fmt::format("VGG-{}", net.depth), image, kLeast);
  const Random random(seed, Purpose::weights);
  auto model = std::make_unique<Sequential>();
  model->add("features", features(net, image[2], random.split(0)))
      .add<AdaptiveAveragePool>("avgpool", 1, 1)
      .add<Flatten>("flatten")
      .add<Linear>("classifier", last_width(net), classes, Init::xavier_normal, random.split(1));
  return model;
}

const std::vector<int>& vgg_depths() {
  static const std::vector<int> depths = {11, 13, 16, 19};
  return depths;
}

}  // namespace tandem

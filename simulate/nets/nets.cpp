#include "simulate/nets/nets.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <functional>

#include "base/error.h"
#include "layers/models/models.h"
#include "simulate/count_flop.h"
#include "train/json_input.h"

namespace tandem {
namespace {

struct Net {
  std::string name;
  std::string source;
  std::function<std::vector<NetTable::Tensor>()> tensors;
};

constexpr std::int64_t kClasses = 1000;
constexpr std::uint64_t kSeed = 1;  // of initial values that nobody reads

using Make = std::function<std::unique_ptr<Layer>(const Shape& image)>;

Net of_images(const std::string& name, const std::string& what, std::int64_t pixels, Make make) {
  return {name,
          fmt::format("{}, images of {} pixels, 1000 classes; FLOP counted from its operations",
                      what, pixels),
          [pixels, make] {
            const Shape image{pixels, pixels, 3};
            return count_flop(*make(image), image);
          }};
}

Net residual(int depth) {
  return of_images(fmt::format("resnet{}", depth),
                   fmt::format("ResNet-{} of layers/models (v1.5)", depth), 224,
                   [depth](const Shape& image) { return resnet(depth, image, kClasses, kSeed); });
}

Net vgg_of(int depth) {
  return of_images(
      fmt::format("vgg{}", depth), fmt::format("VGG-{} of layers/models", depth), 224,
      [depth](const Shape& image) { return vgg({.depth = depth}, image, kClasses, kSeed); });
}

const std::vector<Net>& nets() {
  static const std::vector<Net> kNets = {
      of_images("alexnet", "AlexNet of layers/models (one tower)", 224,
                [](const Shape& image) { return alexnet_owt(image, kClasses, kSeed); }),
      of_images("densenet121", "DenseNet-121 of simulate/nets", 224,
                [](const Shape&) { return densenet121(); }),
      of_images("googlenet", "GoogLeNet of layers/models with both auxiliary classifiers", 224,
                [](const Shape& image) { return googlenet(image, kClasses, kSeed); }),
      of_images("inception-v3", "Inception-v3 of layers/models with its auxiliary classifier", 299,
                [](const Shape& image) { return inception_v3(image, kClasses, kSeed); }),
      of_images("inception-v4", "Inception-v4 of simulate/nets", 299,
                [](const Shape&) { return inception_v4(); }),
      residual(50),
      residual(101),
      residual(152),
      {"sockeye",
       "simulate/nets after P3's paper: 2+2 LSTM layers, 512 wide, MLP attention; vocabularies of "
       "17191 English and 7709 Vietnamese words (usual for IWSLT15, not in the paper); FLOP of "
       "one pair of sentences of 20 words each",
       sockeye},
      vgg_of(16),
      vgg_of(19),
  };
  return kNets;
}

}  // namespace

const std::vector<std::string>& net_names() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    for (const Net& net : nets()) names.push_back(net.name);
    return names;
  }();
  return kNames;
}

NetTable net_named(const std::string& name) {
  const auto net = std::ranges::find(nets(), name, &Net::name);
  if (net == nets().end())
    throw UserError("there is no net {}: choose from {}", shown(name, 40),
                    fmt::join(net_names(), ", "));
  return {.net = net->name, .source = net->source, .tensors = net->tensors()};
}

}  // namespace tandem

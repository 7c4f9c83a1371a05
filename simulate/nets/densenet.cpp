#include <array>

#include "layers/batch_norm.h"
#include "layers/conv2d.h"
#include "layers/linear.h"
#include "layers/sequential.h"
#include "simulate/nets/nets.h"

namespace tandem {
namespace {

constexpr std::int64_t kGrowth = 32;  // channels that a layer adds
constexpr std::int64_t kBottleneck = 4 * kGrowth;
constexpr int kLayers[] = {6, 12, 24, 16};  // of each block
const Random kRandom;                       // initial values are never made

Conv2d::Options convolution(std::int64_t in, std::int64_t out, std::int64_t window,
                            std::int64_t stride = 1) {
  return {.in = in,
          .out = out,
          .window = window,
          .convolution = {.stride = stride, .padding = window / 2}};
}

// Concatenates its input and what it computes from it.
class DenseLayer : public Layer {
 public:
  explicit DenseLayer(std::int64_t in) {
    layers_.add<BatchNorm2d>("norm1", in)
        .add<Relu>("relu1")
        .add<Conv2d>("conv1", convolution(in, kBottleneck, 1), kRandom)
        .add<BatchNorm2d>("norm2", kBottleneck)
        .add<Relu>("relu2")
        .add<Conv2d>("conv2", convolution(kBottleneck, kGrowth, 3), kRandom);
  }
  Var forward(Tape& tape, const Var& x) override {
    const std::array<Var, 2> both{x, layers_.forward(tape, x)};
    return concat(tape, both);
  }
  void collect(const std::string& prefix, std::vector<ParameterSet::Named>& into) override {
    layers_.collect(prefix, into);
  }

 private:
  Sequential layers_;
};

// Halves the channels and the image.
std::unique_ptr<Layer> transition(std::int64_t in) {
  auto layers = std::make_unique<Sequential>();
  layers->add<BatchNorm2d>("norm", in)
      .add<Relu>("relu")
      .add<Conv2d>("conv", convolution(in, in / 2, 1), kRandom)
      .add<AveragePool>("pool", Pool{.window = 2, .stride = 2});
  return layers;
}

}  // namespace

std::unique_ptr<Layer> densenet121() {
  std::int64_t width = 64;
  auto features = std::make_unique<Sequential>();
  features->add<Conv2d>("conv0", convolution(3, width, 7, 2), kRandom)
      .add<BatchNorm2d>("norm0", width)
      .add<Relu>("relu0")
      .add<MaxPool>("pool0", Pool{.window = 3, .stride = 2, .padding = 1});
  int number = 0;
  for (const int layers : kLayers) {
    if (number++ > 0) {
      features->add("transition" + std::to_string(number - 1), transition(width));
      width /= 2;
    }
    auto block = std::make_unique<Sequential>();
    for (int i = 1; i <= layers; ++i, width += kGrowth)
      block->add<DenseLayer>("denselayer" + std::to_string(i), width);
    features->add("denseblock" + std::to_string(number), std::move(block));
  }
  features->add<BatchNorm2d>("norm5", width).add<Relu>("relu5");

  auto net = std::make_unique<Sequential>();
  net->add("features", std::move(features))
      .add<GlobalAveragePool>("pool")
      .add<Linear>("classifier", width, 1000, Init::xavier_normal, kRandom);
  return net;
}

}  // namespace tandem

#include "layers/models/models.h"

#include "layers/conv2d.h"
#include "layers/linear.h"
#include "layers/models/image_size.h"
#include "layers/sequential.h"
#include "layers/simple.h"

namespace tandem {
namespace {

constexpr Init kInit = Init::lecun_uniform;
constexpr std::int64_t kLeast = 63;  // pixels, so that one is left after the last pool
constexpr std::int64_t kPooled = 6;  // pixels left there of 224

struct Filters {
  std::int64_t count, window;
  Convolution convolution;
  bool norm = false, pool = false;  // after the ReLU, in this order
};

// Names count all layers after a convolution too, as PyTorch's Sequential does.
class Features {
 public:
  Features(std::int64_t channels, const Random& random) : channels_(channels), random_(random) {}

  void add(const Filters& f) {
    layers_->add<Conv2d>(std::to_string(next_),
                         Conv2d::Options{.in = channels_,
                                         .out = f.count,
                                         .window = f.window,
                                         .convolution = f.convolution,
                                         .bias = true,
                                         .init = kInit},
                         random_.split(static_cast<std::uint64_t>(next_)));
    ++next_;
    layers_->add<Relu>(std::to_string(next_++));
    // The paper does not divide alpha by the size, but LocalResponseNorm does.
    if (f.norm)
      layers_->add<ResponseNorm>(std::to_string(next_++),
                                 LocalResponseNorm{.size = 5, .alpha = 5e-4, .beta = 0.75, .k = 2});
    if (f.pool) layers_->add<MaxPool>(std::to_string(next_++), Pool{.window = 3, .stride = 2});
    channels_ = f.count;
  }

  std::int64_t channels() const { return channels_; }  // of the output
  std::unique_ptr<Sequential> take() { return std::move(layers_); }

 private:
  std::unique_ptr<Sequential> layers_ = std::make_unique<Sequential>();
  std::int64_t channels_;
  Random random_;
  int next_ = 0;
};

std::unique_ptr<Layer> make(std::initializer_list<Filters> filters, const Shape& image,
                            std::int64_t classes, std::uint64_t seed) {
  require_image("AlexNet", image, kLeast);
  const Random random(seed, Purpose::weights);
  Features features(image[2], random.split(0));
  for (const Filters& f : filters) features.add(f);

  const Shape flat{kPooled, kPooled, features.channels()};
  const Random r = random.split(1);
  auto classifier = std::make_unique<Sequential>();
  classifier->add<Dropout>("0", 0.5)
      .add<Linear>("1",
                   Linear::Options{.in = flat.count(), .out = 4096, .init = kInit, .image = flat},
                   r.split(1))
      .add<Relu>("2")
      .add<Dropout>("3", 0.5)
      .add<Linear>("4", 4096, 4096, kInit, r.split(4))
      .add<Relu>("5")
      .add<Linear>("6", 4096, classes, kInit, r.split(6));

  auto model = std::make_unique<Sequential>();
  model->add("features", features.take())
      .add<AdaptiveAveragePool>("avgpool", kPooled, kPooled)
      .add<Flatten>("flatten")
      .add("classifier", std::move(classifier));
  return model;
}

}  // namespace

std::unique_ptr<Layer> alexnet_owt(const Shape& image, std::int64_t classes, std::uint64_t seed) {
  return make({{64, 11, {.stride = 4, .padding = 2}, false, true},
               {192, 5, {.padding = 2}, false, true},
               {384, 3, {.padding = 1}},
               {256, 3, {.padding = 1}},
               {256, 3, {.padding = 1}, false, true}},
              image, classes, seed);
}

std::unique_ptr<Layer> alexnet_classic(const Shape& image, std::int64_t classes,
                                       std::uint64_t seed) {
  // The padding of 2 turns 224 pixels into 55 x 55. The paper's numbers need 227 pixels without
  // padding.
  return make({{96, 11, {.stride = 4, .padding = 2}, true, true},
               {256, 5, {.padding = 2, .groups = 2}, true, true},
               {384, 3, {.padding = 1}},
               {384, 3, {.padding = 1, .groups = 2}},
               {256, 3, {.padding = 1, .groups = 2}, false, true}},
              image, classes, seed);
}

}  // namespace tandem

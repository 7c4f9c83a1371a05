// A program outside Tandem's tree: its own data, its own model, Tandem's training loop.
//
//   make install PREFIX=$HOME/.local
//   export PKG_CONFIG_PATH=$HOME/.local/lib/pkgconfig
//   g++ -std=c++20 examples/stripes/main.cpp $(pkg-config --cflags --libs tandem) -o stripes
#include <cstdio>

#include "data/dataset.h"
#include "layers/linear.h"
#include "layers/sequential.h"
#include "layers/simple.h"
#include "train/app.h"
#include "train/trainer.h"

using namespace tandem;

namespace {

// Grey 8 x 8 images with noise and horizontal (class 0) or vertical (class 1) stripes.
class Stripes : public Dataset {
 public:
  Stripes(std::int64_t size, std::uint64_t seed) : size_(size), seed_(seed) {}

  std::int64_t size() const override { return size_; }
  Shape image_shape() const override { return {8, 8, 1}; }
  std::int64_t classes() const override { return 2; }
  std::int32_t read(std::int64_t index, std::span<std::uint8_t> pixels, Random*) const override {
    Random random = Random(seed_).split(static_cast<std::uint64_t>(index));
    const std::int32_t label = random.uniform() < 0.5 ? 0 : 1;
    for (std::size_t i = 0; i < pixels.size(); ++i) {
      const std::size_t across = i / 8, down = i % 8;
      const bool bright = (label == 0 ? across : down) % 2 == 0;
      pixels[i] = static_cast<std::uint8_t>((bright ? 100 : 40) + random.uniform(0, 100));
    }
    return label;
  }

 private:
  std::int64_t size_;
  std::uint64_t seed_;
};

DataSplit stripes() {
  return {.train = std::make_shared<Stripes>(2000, 1),
          .test = std::make_shared<Stripes>(500, 2),
          .normalisation = {.mean = {0.47F}, .deviation = {0.16F}},
          .description = "stripes"};
}

std::unique_ptr<Layer> small_net(const Shape& image, std::int64_t classes, std::uint64_t seed) {
  const Random random(seed, Purpose::weights);
  auto net = std::make_unique<Sequential>();
  net->add<Flatten>("flatten")
      .add<Linear>("0", image.count(), 16, Init::he_normal, random.split(0))
      .add<Relu>("1")
      .add<Linear>("2", 16, classes, Init::xavier_normal, random.split(2));
  return net;
}

}  // namespace

int main(int argc, char** argv) {
  return run_app("stripes", [&] {
    TrainOptions options;
    options.batch = 20;
    options.epochs = 1;
    const AppHelp help{.about = "Trains a small net to tell horizontal from vertical stripes.",
                       .data = "Not used: the program draws its images"};
    if (!parse_options(argc, argv, help, options)) return;
    const Summary summary = train({.app = "stripes", .model = small_net, .data = stripes}, options);
    std::printf("%.0f%% of the test images are classified correctly\n",
                100 * summary.test_accuracy);
  });
}

// CIFAR100-Convex of the Pipe-SGD paper: a convolutional net of which only the last layer is
// trained. The loss is then a convex function of the trained weights, as the paper's proof assumes.
// The fixed layers run once for every image, and training reads their outputs.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "base/error.h"
#include "dist/transport/mpi_launch.h"
#include "layers/models/models.h"
#include "train/app.h"
#include "train/data_options.h"
#include "train/fixed_features.h"
#include "train/trainer.h"
#include "train/weights.h"

using namespace tandem;

namespace {

const Shape kImage{32, 32, 3};

// The fixed layers' outputs for the data set. `weights` is a file with all layers or only the fixed
// ones. If it is empty, the fixed weights are random, from the seed.
DataSplit features_of(const DataSplit& images, const std::string& weights, const TrainOptions& o) {
  const int ranks_here = mpi_launch().value_or(MpiLaunch{}).local_size;
  const Device cpu =
      cpu_device(std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / ranks_here));
  CifarConvex net(kImage, images.train->classes(), o.seed);
  ParameterSet parameters(net.parameters(), cpu);
  if (!weights.empty()) load_fixed_weights(weights, parameters);
  const auto forward = [&](Tape& tape, const Var& x) { return net.features(tape, x); };
  return with_fixed_features(
      images, {parameters, forward, CifarConvex::kFeatures}, [&](std::int64_t count) {
        if (o.quiet || !is_first_rank()) return;
        // Standard output may be an output file (--summary -).
        std::fputs(fmt::format("running the fixed layers once for {} images\n", count).c_str(),
                   stderr);
      });
}

}  // namespace

int main(int argc, char** argv) {
  return run_app("cifar_convex", [&] {
    TrainOptions options;  // batch 100 and no warm-up, as in the paper
    options.epochs = 30;
    options.lr = 0.01;
    std::string dataset = "cifar100", features;
    bool augment = false, recompute = false;
    const AppHelp help{
        .about =
            "Trains the last layer of a small convolutional net on CIFAR-100 or CIFAR-10,\n"
            "or on generated objects. The other layers are fixed, which makes the loss\n"
            "convex. Their weights are random, from the seed, or come from a net trained\n"
            "by cifar_cnn. They run once for every image, and their outputs are kept for\n"
            "later runs.",
        .data = kCifarHelp,
        .own = {cifar_dataset_option(dataset),
                {.name = "--features",
                 .value = &features,
                 .value_name = "FILE",
                 .help = "Take the fixed layers from this file (written by\n"
                         "cifar_cnn --save, for either data set)",
                 .ranks_differ = true},
                {.name = "--augment",
                 .value = &augment,
                 .help = "Shift and flip the training images at random; implies\n"
                         "--recompute"},
                {.name = "--recompute",
                 .value = &recompute,
                 .help = "Run the fixed layers in every iteration instead of\n"
                         "once: the same result with more computation"}}};
    if (!parse_options(argc, argv, help, options)) return;
    if (!features.empty() && !options.load.empty())
      throw UserError("--features and --load cannot be used together: --load loads all layers");
    const auto data = [&] {
      const DataSplit images = open_cifar(dataset, options.data, augment);
      if (augment || recompute) return images;
      return features_of(images, features.empty() ? options.load : features, options);
    };
    const auto model = [](const Shape&, std::int64_t classes, std::uint64_t seed) {
      return std::make_unique<CifarConvex>(kImage, classes, seed);
    };
    train({.app = "cifar_convex",
           .model = model,
           .data = data,
           .net = "CIFAR-Convex",
           .features = features},
          options);
  });
}

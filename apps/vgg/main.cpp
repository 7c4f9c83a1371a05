// VGG. VGG-16 and VGG-19 are benchmarks of the papers on overlap: most of their parameters are in
// one layer near the end.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "layers/models/models.h"
#include "train/app.h"
#include "train/data_options.h"
#include "train/trainer.h"

using namespace tandem;

namespace {

struct Options : DatasetOptions {
  std::int64_t depth = 16;
  bool batch_norm = false;
};

AppHelp help_for(Options& o) {
  AppHelp help{
      .about =
          "Trains VGG on photographs in folders, such as ImageNet, on generated images to\n"
          "measure speed, or on CIFAR. The net for CIFAR has the same convolutions and one\n"
          "linear layer, from 512 to the classes. pipe-sgd begins with 5 epochs of d-sync;\n"
          "to measure the pipeline at once, give --warmup-epochs 0.",
      .data = DatasetOptions::data_help(),
      .own = {{.name = "--depth",
               .value = &o.depth,
               .value_name = "N",
               .help = "Layers: 11, 13, 16 or 19"},
              {.name = "--batch-norm",
               .value = &o.batch_norm,
               .help = "Normalise after every convolution, as torchvision's\n"
                       "vgg16_bn does"}}};
  for (const OwnOption& own : o.own()) help.own.push_back(own);
  return help;
}

void settle(Options& o, TrainOptions& train) {
  const auto& depths = vgg_depths();
  if (std::ranges::find(depths, o.depth) == depths.end())
    throw UserError("--depth {} is not available: choose from {}", o.depth,
                    fmt::join(depths, ", "));
  o.settle(train.data);
}

}  // namespace

int main(int argc, char** argv) {
  return run_app("vgg", [&] {
    TrainOptions options;
    options.batch = 256;  // as in VGG's paper, like rate and decay
    options.epochs = 90;
    options.lr = 0.01;
    options.weight_decay = 5e-4;
    options.lr_schedule = Schedule::Kind::step;
    options.algo_options["--warmup-epochs"] = 5;  // for pipe-sgd
    Options own;
    if (!parse_options(argc, argv, help_for(own), options)) return;
    settle(own, options);
    const auto model = [&](const Shape& image, std::int64_t classes, std::uint64_t seed) {
      const auto make = own.cifar() ? cifar_vgg : vgg;
      return make({.depth = static_cast<int>(own.depth), .batch_norm = own.batch_norm}, image,
                  classes, seed);
    };
    train({.app = "vgg",
           .model = model,
           .data = [&] { return own.open(options.data); },
           .net = fmt::format("VGG-{}{}", own.depth, own.batch_norm ? " with batch norm" : "")},
          options);
  });
}

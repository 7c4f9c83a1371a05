// Residual nets. ResNet-18 is a benchmark of the Pipe-SGD paper.
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
  std::int64_t depth = 0;  // 0: the smallest
};

AppHelp help_for(Options& o) {
  AppHelp help{
      .about =
          "Trains a residual net on photographs in folders, such as ImageNet, on generated\n"
          "images to measure speed, or on CIFAR. pipe-sgd begins with 5 epochs\n"
          "of d-sync, as in the paper; to measure the pipeline at once, give\n"
          "--warmup-epochs 0.",
      .data = DatasetOptions::data_help(),
      .own = {{.name = "--depth",
               .value = &o.depth,
               .value_name = "N",
               .help = "Layers: 18, 34, 50, 101 or 152; with CIFAR 20, 32, 44,\n"
                       "56 or 110. Default: 18; with CIFAR 20"}}};
  for (const OwnOption& own : o.own()) help.own.push_back(own);
  return help;
}

// Checks that the options fit together, and fills in the defaults that depend on others.
void settle(Options& o, TrainOptions& train) {
  const auto& depths = o.cifar() ? cifar_resnet_depths() : resnet_depths();
  if (o.depth == 0) o.depth = depths.front();
  if (std::ranges::find(depths, o.depth) == depths.end())
    throw UserError("--depth {} is not available for --dataset {}: choose from {}", o.depth,
                    o.dataset, fmt::join(depths, ", "));
  train.own["depth"].value = o.depth;
  o.settle(train.data);
}

}  // namespace

int main(int argc, char** argv) {
  return run_app("resnet", [&] {
    TrainOptions options;
    options.batch = 256;  // as in the paper
    options.epochs = 90;
    options.lr = 0.1;
    options.weight_decay = 1e-4;
    options.lr_schedule = Schedule::Kind::step;
    options.algo_options["--warmup-epochs"] = 5;  // as in the paper; for pipe-sgd
    Options own;
    if (!parse_options(argc, argv, help_for(own), options)) return;
    settle(own, options);
    const auto model = [&](const Shape& image, std::int64_t classes, std::uint64_t seed) {
      const auto make = own.cifar() ? cifar_resnet : resnet;
      return make(static_cast<int>(own.depth), image, classes, seed);
    };
    train({.app = "resnet",
           .model = model,
           .data = [&] { return own.open(options.data); },
           .net = fmt::format("ResNet-{}", own.depth)},
          options);
  });
}

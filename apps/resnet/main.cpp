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

struct Options {
  std::string dataset = "folder";
  std::int64_t depth = 0;  // 0: the smallest
  bool no_augment = false;
  ImageOptions images;

  bool cifar() const { return dataset.starts_with("cifar"); }
};

AppHelp help_for(Options& o) {
  AppHelp help{
      .about =
          "Trains a residual net on photographs in folders, such as ImageNet, on generated\n"
          "images to measure speed, or on CIFAR. pipe-sgd begins with 5 epochs\n"
          "of d-sync, as in the paper; to measure the pipeline at once, give\n"
          "--warmup-epochs 0.",
      .data = std::string(kImagesHelp) +
              ".\n"
              "With CIFAR: folder with its binary files, or generated\n"
              "objects",
      .own = {{.name = "--dataset",
               .value = &o.dataset,
               .value_name = "NAME",
               .help = "folder: photographs, see --data; synthetic: the same\n"
                       "as --data synthetic; cifar10 or cifar100",
               .choices = {"folder", "synthetic", "cifar10", "cifar100"}},
              {.name = "--depth",
               .value = &o.depth,
               .value_name = "N",
               .help = "Layers: 18, 34, 50, 101 or 152; with CIFAR 20, 32, 44,\n"
                       "56 or 110. Default: 18; with CIFAR 20"},
              {.name = "--no-augment",
               .value = &o.no_augment,
               .help = "CIFAR: do not shift and flip the training images"}}};
  for (const OwnOption& own : o.images.own()) help.own.push_back(own);
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
  const bool of_photographs = o.images.image_size > 0 || o.images.skip_bad_images ||
                              o.images.max_pixels > 0 || o.images.loader_threads > 0;
  if (o.cifar() && of_photographs)
    throw UserError(
        "--image-size, --skip-bad-images, --max-pixels and --loader-threads have no effect with "
        "--dataset {}",
        o.dataset);
  if (!o.cifar() && o.no_augment)
    throw UserError("--no-augment has no effect with --dataset {}", o.dataset);
  if (o.dataset == "synthetic") {
    if (!train.data.empty() && train.data != "synthetic")
      throw UserError("--data {} has no effect with --dataset synthetic", train.data);
    train.data = "synthetic";
  }
}

DataSplit open(const Options& o, const std::string& data) {
  return o.cifar() ? open_cifar(o.dataset, data, !o.no_augment) : open_images(data, o.images);
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
           .data = [&] { return open(own, options.data); },
           .net = fmt::format("ResNet-{}", own.depth)},
          options);
  });
}

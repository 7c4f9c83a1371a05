// GoogLeNet, a benchmark of the MG-WFBP paper: it has many layers with few parameters each, so
// merging their gradients matters.
#include "layers/models/models.h"
#include "train/app.h"
#include "train/data_options.h"
#include "train/trainer.h"

using namespace tandem;

int main(int argc, char** argv) {
  return run_app("googlenet", [&] {
    TrainOptions options;
    options.batch = 256;
    options.epochs = 90;
    options.lr = 0.01;
    options.weight_decay = 2e-4;
    options.lr_schedule = Schedule::Kind::step;
    options.algo_options["--warmup-epochs"] = 5;  // for pipe-sgd
    ImageOptions images;
    const AppHelp help{
        .about =
            "Trains GoogLeNet on photographs in folders, such as ImageNet, or on generated\n"
            "images to measure speed. The training loss includes those of two auxiliary\n"
            "classifiers, each times 0.3; tests do not use them. pipe-sgd begins with\n"
            "5 epochs of d-sync; to measure the pipeline at once, give --warmup-epochs 0.",
        .data = kImagesHelp,
        .own = images.own()};
    if (!parse_options(argc, argv, help, options)) return;
    train({.app = "googlenet",
           .model = googlenet,
           .data = [&] { return open_images(options.data, images); },
           .net = "GoogLeNet"},
          options);
  });
}

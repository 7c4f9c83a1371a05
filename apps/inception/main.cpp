// Inception-v3, a benchmark of the P3 paper.
#include "layers/models/models.h"
#include "train/app.h"
#include "train/data_options.h"
#include "train/trainer.h"

using namespace tandem;

int main(int argc, char** argv) {
  return run_app("inception", [&] {
    TrainOptions options;
    options.batch = 256;
    options.epochs = 90;
    options.lr = 0.05;
    options.weight_decay = 4e-5;
    options.label_smoothing = 0.1;  // as in Inception's paper
    options.lr_schedule = Schedule::Kind::step;
    options.algo_options["--warmup-epochs"] = 5;  // for pipe-sgd
    ImageOptions images;
    images.usual_size = 299;
    const AppHelp help{
        .about =
            "Trains Inception-v3 on photographs in folders, such as ImageNet, or on generated\n"
            "images to measure speed. The training loss includes that of an auxiliary\n"
            "classifier, times 0.4; tests do not use it. pipe-sgd begins with 5 epochs of\n"
            "d-sync; to measure the pipeline at once, give --warmup-epochs 0.",
        .data = kImagesHelp,
        .own = images.own()};
    if (!parse_options(argc, argv, help, options)) return;
    const auto model = [](const Shape& image, std::int64_t classes, std::uint64_t seed) {
      return inception_v3(image, classes, seed);
    };
    train({.app = "inception",
           .model = model,
           .data = [&] { return open_images(options.data, images); },
           .net = "Inception-v3"},
          options);
  });
}

// CIFAR100-Convex of the Pipe-SGD paper: a convolutional net of which only the last layer is
// trained, so that the loss is a convex function of what is trained, as the paper's proof assumes.
#include "layers/models/cifar_cnn.h"
#include "tensor/error.h"
#include "train/app.h"
#include "train/cifar_options.h"
#include "train/trainer.h"

using namespace tandem;

int main(int argc, char** argv) {
  return run_app("cifar_convex", [&] {
    TrainOptions options;  // the paper's batch of 100, and no warm-up
    options.epochs = 30;
    options.lr = 0.01;
    std::string dataset = "cifar100", features;
    bool augment = false;
    const AppHelp help{
        .about =
            "Trains the last layer of a small convolutional net on CIFAR-100 or CIFAR-10,\n"
            "or on objects drawn by program. The other layers stay as they are, which\n"
            "makes the loss convex: random, as the seed decides, or those of a net that\n"
            "cifar_cnn has trained.",
        .data = kCifarHelp,
        .own = {cifar_dataset_option(dataset),
                {.name = "--features",
                 .value = &features,
                 .value_name = "FILE",
                 .help = "Take the fixed layers from here (what cifar_cnn\n"
                         "--save has written, for either data set)"},
                {.name = "--augment",
                 .value = &augment,
                 .help = "Shift and flip the training images at random"}}};
    if (!parse_options(argc, argv, help, options)) return;
    if (!features.empty() && !options.load.empty())
      throw UserError("--features and --load exclude each other: --load brings all layers");
    const auto data = [&] { return open_cifar(dataset, options.data, augment); };
    train({.app = "cifar_convex", .model = cifar_convex, .data = data, .features = features},
          options);
  });
}

// CIFAR100-CNN: the net of the Pipe-SGD paper's convex benchmark, but with all layers trained.
#include "layers/models/models.h"
#include "train/app.h"
#include "train/data_options.h"
#include "train/trainer.h"

using namespace tandem;

int main(int argc, char** argv) {
  return run_app("cifar_cnn", [&] {
    TrainOptions options;  // batch 100, as in the paper
    options.epochs = 60;
    options.lr = 0.01;  // also works with gradients one iteration old
    options.weight_decay = 5e-4;
    options.lr_schedule = Schedule::Kind::cosine;
    std::string dataset = "cifar100";
    bool no_augment = false;
    const AppHelp help{
        .about =
            "Trains a small convolutional net (three convolutions, two fully connected\n"
            "layers) on CIFAR-100 or CIFAR-10, or on generated objects.",
        .data = kCifarHelp,
        .own = {cifar_dataset_option(dataset),
                {.name = "--no-augment",
                 .value = &no_augment,
                 .help = "Do not shift and flip the training images"}}};
    if (!parse_options(argc, argv, help, options)) return;
    const auto data = [&] { return open_cifar(dataset, options.data, !no_augment); };
    train({.app = "cifar_cnn", .model = cifar_cnn, .data = data, .net = "CIFAR-CNN"}, options);
  });
}

// CIFAR100-CNN, the net behind the convex benchmark of the Pipe-SGD paper, trained as a whole.
#include "data/cifar.h"
#include "layers/models/cifar_cnn.h"
#include "train/app.h"
#include "train/trainer.h"

using namespace tandem;

int main(int argc, char** argv) {
  return run_app("cifar_cnn", [&] {
    TrainOptions options;  // the paper's batch of 100
    options.epochs = 60;
    options.lr = 0.01;  // suits gradients that are an iteration old, too
    options.weight_decay = 5e-4;
    options.lr_schedule = "cosine";
    std::string dataset = "cifar100";
    bool no_augment = false;
    const AppHelp help{
        .about =
            "Trains a small convolutional net (three convolutions, two fully connected\n"
            "layers) on CIFAR-100 or CIFAR-10, or on objects drawn by program.",
        .data =
            "Folder with the binary files of the data set, or\n"
            "objects drawn by program. Default: what `make data`\n"
            "has put into datasets/, else synthetic",
        .own = {{.name = "--dataset",
                 .value = &dataset,
                 .value_name = "NAME",
                 .help = "cifar10 or cifar100",
                 .choices = {"cifar10", "cifar100"}},
                {.name = "--no-augment",
                 .value = &no_augment,
                 .help = "Do not shift and flip the training images"}}};
    if (!parse_options(argc, argv, help, options)) return;
    const auto data = [&] {
      DataSplit split = open_cifar(dataset == "cifar10" ? 10 : 100, options.data);
      if (no_augment) split.augment = {};
      return split;
    };
    train({.app = "cifar_cnn", .model = cifar_cnn, .data = data}, options);
  });
}

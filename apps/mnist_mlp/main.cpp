// MNIST-MLP, the smallest benchmark of the Pipe-SGD paper.
#include "data/mnist.h"
#include "layers/models/models.h"
#include "train/app.h"
#include "train/trainer.h"

using namespace tandem;

int main(int argc, char** argv) {
  return run_app("mnist_mlp", [&] {
    TrainOptions options;  // batch 100, as in the paper
    options.lr = 0.02;     // also works with gradients one iteration old
    const AppHelp help{
        .about =
            "Trains a multilayer perceptron (784-500-500-10) on MNIST, on any set in\n"
            "its format, or on generated digits.",
        .data =
            "Folder with the data set, or generated digits.\n"
            "Default: what `make data` put into datasets/"};
    if (!parse_options(argc, argv, help, options)) return;
    train({.app = "mnist_mlp",
           .model = [](const Shape&, std::int64_t, std::uint64_t seed) { return mnist_mlp(seed); },
           .data = [&] { return open_mnist(options.data); },
           .net = "MNIST-MLP"},
          options);
  });
}

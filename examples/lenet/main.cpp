// LeNet-5 on MNIST, built outside Tandem's tree.
//
//   make install PREFIX=$HOME/.local
//   export PKG_CONFIG_PATH=$HOME/.local/lib/pkgconfig
//   g++ -std=c++20 -O2 examples/lenet/main.cpp $(pkg-config --cflags --libs tandem) -o lenet
#include "data/mnist.h"
#include "lenet.h"
#include "train/app.h"
#include "train/trainer.h"

using namespace tandem;

int main(int argc, char** argv) {
  return run_app("lenet", [&] {
    TrainOptions options;
    options.epochs = 3;
    options.lr = 0.01;
    const AppHelp help{.about = "Trains LeNet-5 on MNIST or on generated digits.",
                       .data = "Folder with MNIST's files, or generated digits"};
    if (!parse_options(argc, argv, help, options)) return;
    train(
        {.app = "lenet", .model = lenet::lenet5, .data = [&] { return open_mnist(options.data); }},
        options);
  });
}

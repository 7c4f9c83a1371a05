// AlexNet, a benchmark of the Pipe-SGD paper. It has many parameters, so communication matters.
#include "layers/models/models.h"
#include "train/app.h"
#include "train/data_options.h"
#include "train/trainer.h"

using namespace tandem;

int main(int argc, char** argv) {
  return run_app("alexnet", [&] {
    TrainOptions options;
    options.batch = 256;  // as in the paper
    options.epochs = 90;
    options.lr = 0.01;
    options.weight_decay = 5e-4;
    options.lr_schedule = Schedule::Kind::step;
    options.algo_options["--warmup-epochs"] = 5;  // as in the paper; for pipe-sgd
    std::string variant = "owt";
    ImageOptions images;
    AppHelp help{.about =
                     "Trains AlexNet on photographs in folders, such as ImageNet, or on generated\n"
                     "images to measure speed. pipe-sgd begins with 5 epochs of d-sync, as in\n"
                     "the paper; to measure the pipeline at once, give --warmup-epochs 0.",
                 .data = kImagesHelp,
                 .own = {{.name = "--variant",
                          .value = &variant,
                          .value_name = "NAME",
                          .help = "owt: one column (Krizhevsky, 2014), as in\n"
                                  "torchvision; classic: groups and response\n"
                                  "normalisation, as in 2012",
                          .choices = {"classic", "owt"}}}};
    for (const OwnOption& own : images.own()) help.own.push_back(own);
    if (!parse_options(argc, argv, help, options)) return;
    train({.app = "alexnet",
           .model = variant == "owt" ? alexnet_owt : alexnet_classic,
           .data = [&] { return open_images(options.data, images); },
           .net = "AlexNet (" + variant + ")"},
          options);
  });
}

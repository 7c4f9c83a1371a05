#include "train/data_options.h"

#include <filesystem>

#include "base/error.h"
#include "data/cifar.h"
#include "data/image_folder.h"
#include "data/synthetic.h"

namespace tandem {
namespace {

constexpr const char* kDefaultFolder = "datasets/imagenet";

DataSplit open(const std::string& data, const ImageFolderOptions& options) {
  const bool there = data.empty() && std::filesystem::exists(kDefaultFolder);
  if (data != "synthetic" && (!data.empty() || there))
    return open_image_folder(there ? kDefaultFolder : data, options);
  if (options.skip_bad_images)
    throw UserError("--skip-bad-images needs --data with a folder of images");
  DataSplit split = synthetic_imagenet(options.image_size);
  if (data.empty())
    split.description += fmt::format(", as there is no {} (see --data)", kDefaultFolder);
  return split;
}

}  // namespace

std::vector<OwnOption> ImageOptions::own() {
  return {{.name = "--image-size",
           .value = &image_size,
           .value_name = "N",
           .help = fmt::format("Scale images to N x N pixels. Default: {}", usual_size),
           .most = 4096},
          {.name = "--skip-bad-images",
           .value = &skip_bad_images,
           .help = "Continue if an image cannot be read: train on the\n"
                   "next one in its place, test without it, and list\n"
                   "such images at the end"},
          {.name = "--max-pixels",
           .value = &max_pixels,
           .value_name = "N",
           .help = "Do not decode images with more pixels than this; a\n"
                   "pixel takes up to 32 bytes. Default: 64000000",
           .most = 1 << 30},
          {.name = "--loader-threads",
           .value = &loader_threads,
           .value_name = "N",
           .help = "Threads that read images, for all workers together.\n"
                   "Default: depends on the data and this machine",
           .most = 1024,
           .ranks_differ = true}};
}

DataSplit open_images(const std::string& data, const ImageOptions& o) {
  DataSplit split = open(data, {.image_size = o.image_size > 0 ? o.image_size : o.usual_size,
                                .skip_bad_images = o.skip_bad_images,
                                .max_pixels = o.max_pixels > 0 ? o.max_pixels : kMaxPixels});
  if (o.loader_threads > 0) split.loader_threads = static_cast<int>(o.loader_threads);
  return split;
}

OwnOption cifar_dataset_option(std::string& dataset) {
  return {.name = "--dataset",
          .value = &dataset,
          .value_name = "NAME",
          .help = "cifar10 or cifar100",
          .choices = {"cifar10", "cifar100"}};
}

DataSplit open_cifar(const std::string& dataset, const std::string& data, bool augment) {
  DataSplit split = open_cifar(dataset == "cifar10" ? 10 : 100, data);
  if (!augment) split.augment = {};
  return split;
}

std::vector<OwnOption> DatasetOptions::own() {
  std::vector<OwnOption> all = {{.name = "--dataset",
                                 .value = &dataset,
                                 .value_name = "NAME",
                                 .help = "folder: photographs, see --data; synthetic: the same\n"
                                         "as --data synthetic; cifar10 or cifar100",
                                 .choices = {"folder", "synthetic", "cifar10", "cifar100"}},
                                {.name = "--no-augment",
                                 .value = &no_augment,
                                 .help = "CIFAR: do not shift and flip the training images"}};
  for (const OwnOption& each : images.own()) all.push_back(each);
  return all;
}

std::string DatasetOptions::data_help() {
  return std::string(kImagesHelp) +
         ".\n"
         "With CIFAR: folder with its binary files, or generated\n"
         "objects";
}

void DatasetOptions::settle(std::string& data) const {
  const bool of_photographs = images.image_size > 0 || images.skip_bad_images ||
                              images.max_pixels > 0 || images.loader_threads > 0;
  if (cifar() && of_photographs)
    throw UserError(
        "--image-size, --skip-bad-images, --max-pixels and --loader-threads have no effect with "
        "--dataset {}",
        dataset);
  if (!cifar() && no_augment)
    throw UserError("--no-augment has no effect with --dataset {}", dataset);
  if (dataset == "synthetic") {
    if (!data.empty() && data != "synthetic")
      throw UserError("--data {} has no effect with --dataset synthetic", data);
    data = "synthetic";
  }
}

DataSplit DatasetOptions::open(const std::string& data) const {
  return cifar() ? open_cifar(dataset, data, !no_augment) : open_images(data, images);
}

}  // namespace tandem

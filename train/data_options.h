// Options and data that several programs share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "train/options.h"

namespace tandem {

// For photographs: where the images come from, and how they are read.
struct ImageOptions {
  std::int64_t image_size = 0;  // width and height in pixels; 0: usual_size
  bool skip_bad_images = false;
  std::int64_t max_pixels = 0;      // of an image file; 0: kMaxPixels
  std::int64_t loader_threads = 0;  // 0: chosen for the data set

  std::int64_t usual_size = 224;  // the net's

  std::vector<OwnOption> own();  // for AppHelp; they point into `this`
};

inline constexpr const char* kImagesHelp =
    "Folder with train/CLASS/*.jpg and val/CLASS/*.jpg (or\n"
    ".jpeg, .png), or generated images to measure speed.\n"
    "Default: datasets/imagenet if it exists, else\n"
    "synthetic";

// Opens what --data names: a folder, "synthetic", or, if empty, datasets/imagenet if it exists and
// synthetic otherwise. Throws UserError if files are missing or options contradict each other.
DataSplit open_images(const std::string& data, const ImageOptions& options);

// For CIFAR: which of the two data sets, and its augmentation.
inline constexpr const char* kCifarHelp =
    "Folder with the binary files of the data set, or\n"
    "generated objects. Default: what `make data`\n"
    "put into datasets/, else synthetic";

// --dataset cifar10|cifar100, for AppHelp. `dataset` holds the default; the option keeps a pointer
// to it.
OwnOption cifar_dataset_option(std::string& dataset);

// Opens that data set. `data` is the value of --data, see data/cifar.h.
DataSplit open_cifar(const std::string& dataset, const std::string& data, bool augment);

// For nets that have a form for photographs and one for CIFAR: which data set, and its options.
struct DatasetOptions {
  std::string dataset = "folder";
  bool no_augment = false;
  ImageOptions images;

  bool cifar() const { return dataset.starts_with("cifar"); }

  std::vector<OwnOption> own();    // for AppHelp; they point into `this`
  static std::string data_help();  // of --data

  // Checks that the options fit together and fit `data`, the value of --data, which becomes
  // "synthetic" if --dataset says so. Throws UserError.
  void settle(std::string& data) const;
  DataSplit open(const std::string& data) const;
};

}  // namespace tandem

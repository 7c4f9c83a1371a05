// Options that the CIFAR programs share: which of the two data sets, and its augmentation.
#pragma once

#include <string>

#include "data/dataset.h"
#include "train/options.h"

namespace tandem {

inline constexpr const char* kCifarHelp =
    "Folder with the binary files of the data set, or\n"
    "generated objects. Default: what `make data`\n"
    "put into datasets/, else synthetic";

// --dataset cifar10|cifar100, for AppHelp. `dataset` holds the default; the option keeps a pointer
// to it.
OwnOption cifar_dataset_option(std::string& dataset);

// Opens that data set. `data` is the value of --data, see data/cifar.h.
DataSplit open_cifar(const std::string& dataset, const std::string& data, bool augment);

}  // namespace tandem

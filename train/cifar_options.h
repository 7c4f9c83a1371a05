// What the applications for CIFAR share: which of the two sets, and how it is varied.
#pragma once

#include <string>

#include "data/dataset.h"
#include "train/options.h"

namespace tandem {

inline constexpr const char* kCifarHelp =
    "Folder with the binary files of the data set, or\n"
    "generated objects. Default: what `make data`\n"
    "has put into datasets/, else synthetic";

// --dataset cifar10|cifar100, for AppHelp; `dataset` holds the default and must stay where it is.
OwnOption cifar_dataset_option(std::string& dataset);

// The set of that name. `data` is what --data says, see data/cifar.h.
DataSplit open_cifar(const std::string& dataset, const std::string& data, bool augment);

}  // namespace tandem

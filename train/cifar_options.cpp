#include "train/cifar_options.h"

#include "data/cifar.h"

namespace tandem {

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

}  // namespace tandem

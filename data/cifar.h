// CIFAR-10 and CIFAR-100 (Krizhevsky, 2009) in their binary form: records of one label byte (of
// CIFAR-100: the coarse one, then the fine one) and 3,072 bytes, the red, green and blue plane of
// a 32×32 image.
#pragma once

#include <filesystem>
#include <string>

#include "data/dataset.h"

namespace tandem {

// `classes` is 10 (data_batch_1.bin … data_batch_5.bin, test_batch.bin) or 100 (train.bin,
// test.bin; the fine labels). Throws UserError with the path if a file is missing or broken.
DataSplit load_cifar(int classes, const std::filesystem::path& folder);

// Opens what `--data` names: a folder or "synthetic" (synthetic.h). If it is empty,
// datasets/cifar-10 or datasets/cifar-100 if that exists, else the synthetic set. The description
// says which one was taken and why. Training images are padded, cropped and flipped (augment.h).
DataSplit open_cifar(int classes, const std::string& data);

}  // namespace tandem

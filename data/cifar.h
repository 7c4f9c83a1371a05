// CIFAR-10 and CIFAR-100 (Krizhevsky, 2009) in their binary form: records of one label byte (of
// CIFAR-100: the coarse one, then the fine one) and 3,072 bytes, the red, green and blue plane of
// a 32×32 image.
#pragma once

#include <filesystem>
#include <string>

#include "data/dataset.h"

namespace tandem {

// `classes` is 10 (data_batch_1.bin … data_batch_5.bin, test_batch.bin) or 100 (train.bin,
// test.bin; the fine labels). Throws UserError with the path for what is missing or broken.
DataSplit load_cifar(int classes, const std::filesystem::path& folder);

// What `--data` means: a folder, "synthetic" (synthetic_objects.h), or, when empty,
// datasets/cifar-10 or datasets/cifar-100 if it is there, else the synthetic set; the description
// says which one it became and why. Training images are padded, cropped and flipped (augment.h).
DataSplit open_cifar(int classes, const std::string& data);

}  // namespace tandem

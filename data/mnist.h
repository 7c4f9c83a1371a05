// MNIST, and the sets that come in its format.
#pragma once

#include <filesystem>
#include <string>

#include "data/dataset.h"

namespace tandem {

// The four IDX files, plain or .gz, of MNIST or Fashion-MNIST in `folder`.
DataSplit load_mnist(const std::filesystem::path& folder);

// What `--data` means: a folder, "synthetic" (synthetic_digits.h), or, when empty, the first that
// is there of datasets/mnist, datasets/fashion-mnist and the synthetic set; the description says
// which one it became and why.
DataSplit open_mnist(const std::string& data);

}  // namespace tandem

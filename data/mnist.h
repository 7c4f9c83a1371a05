// MNIST, and the sets that come in its format.
#pragma once

#include <filesystem>
#include <string>

#include "data/dataset.h"

namespace tandem {

// The four IDX files, plain or .gz, of MNIST or Fashion-MNIST in `folder`.
DataSplit load_mnist(const std::filesystem::path& folder);

// Opens what `--data` names: a folder or "synthetic" (synthetic_digits.h). If it is empty, the
// first that exists of datasets/mnist, datasets/fashion-mnist and the synthetic set. The
// description says which one was taken and why.
DataSplit open_mnist(const std::string& data);

}  // namespace tandem

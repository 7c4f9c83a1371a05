// MNIST, and the sets that come in its format.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace tandem {

// The four IDX files, plain or .gz, of MNIST or Fashion-MNIST in `folder`.
DataSplit load_mnist(const std::filesystem::path& folder);

// Opens what `--data` names: a folder or "synthetic" (synthetic.h). If it is empty, the
// first that exists of datasets/mnist, datasets/fashion-mnist and the synthetic set. The
// description says which one was taken and why.
DataSplit open_mnist(const std::string& data);

// The IDX format of MNIST and its successors: a magic number (two zero bytes, the element type,
// the number of sizes), the sizes as big-endian 32-bit integers, then the elements.
struct IdxFile {
  std::vector<std::int64_t> sizes;
  std::vector<std::uint8_t> bytes;  // elements are unsigned bytes
};

// Reads a plain or gzip file, which must have `rank` sizes and exactly the bytes that they imply.
// Otherwise throws UserError, which names the path. Sizes are checked against the file's size
// before memory is allocated.
IdxFile read_idx(const std::filesystem::path& path, int rank);

}  // namespace tandem

// The IDX format of MNIST and its successors: a magic number (two zero bytes, the element type,
// the number of sizes), the sizes as big-endian 32-bit integers, then the elements.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace tandem {

struct IdxFile {
  std::vector<std::int64_t> sizes;
  std::vector<std::uint8_t> bytes;  // elements are unsigned bytes
};

// Reads a plain or gzip file, which must have `rank` sizes and exactly the bytes that they imply.
// Otherwise throws UserError, which names the path. Sizes are checked against the file's size
// before memory is allocated.
IdxFile read_idx(const std::filesystem::path& path, int rank);

}  // namespace tandem

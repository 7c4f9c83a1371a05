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

// Reads a file, plain or gzip, that must hold `rank` sizes and exactly the bytes they promise.
// Anything else throws UserError with the path in it. Sizes are checked against the file's size
// before memory is allocated.
IdxFile read_idx(const std::filesystem::path& path, int rank);

}  // namespace tandem

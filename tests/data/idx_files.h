// Small IDX files for tests.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support.h"

namespace tandem::test {

inline std::string idx(const std::vector<std::uint32_t>& sizes, const std::string& bytes) {
  std::string file = {0, 0, 8, static_cast<char>(sizes.size())};
  for (const std::uint32_t size : sizes)
    for (int shift = 24; shift >= 0; shift -= 8) file += static_cast<char>(size >> shift);
  return file + bytes;
}

// Image i shows brightness i and has the label i % 10.
inline void write_mnist(const std::filesystem::path& folder, std::uint32_t train,
                        std::uint32_t test) {
  for (const auto& [half, count] : {std::pair{"train", train}, std::pair{"t10k", test}}) {
    std::string pixels, labels;
    for (std::uint32_t i = 0; i < count; ++i) {
      pixels += std::string(784, static_cast<char>(i));
      labels += static_cast<char>(i % 10);
    }
    write_bytes(folder / (std::string(half) + "-images-idx3-ubyte"), idx({count, 28, 28}, pixels));
    write_bytes(folder / (std::string(half) + "-labels-idx1-ubyte"), idx({count}, labels));
  }
}

// A data set that takes no time to load, in a folder that is there until the tests end.
inline std::string few_digits() {
  static const TemporaryFolder folder;
  if (std::filesystem::is_empty(folder.path())) write_mnist(folder.path(), 200, 10);
  return folder.path();
}

}  // namespace tandem::test

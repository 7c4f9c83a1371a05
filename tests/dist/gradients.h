#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "base/random.h"

namespace tandem::test {

// A gradient that every rank has of its own.
inline std::vector<float> gradient(std::int64_t count, int rank) {
  Random random(static_cast<std::uint64_t>(rank) + 1);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& v : values) v = static_cast<float>(random.uniform(-1, 1));
  return values;
}

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float x, float y) {
    return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y);
  });
}

}  // namespace tandem::test

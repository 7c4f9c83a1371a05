#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tandem {

inline constexpr std::uint32_t kInfinityBits = 0x7f800000U;

// As integers, magnitudes have the same order as the floats; infinity (kInfinityBits) is larger
// than all numbers, and NaN larger than infinity.
inline std::uint32_t magnitude_bits(float value) {
  return std::bit_cast<std::uint32_t>(value) & 0x7fffffffU;
}

// The bits of the largest magnitude among value(0) … value(count - 1). Calls each once and in
// order, so that the same pass can do other work.
template <class Value>
std::uint32_t largest_magnitude_bits(std::size_t count, Value&& value) {
  // Several independent maxima, because a single one would be a chain of dependent steps.
  constexpr std::size_t kLanes = 32;
  std::array<std::uint32_t, kLanes> lanes{};
  const auto magnitude = [&](std::size_t i) { return magnitude_bits(value(i)); };
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (std::size_t k = 0; k < kLanes; ++k) lanes[k] = std::max(lanes[k], magnitude(i + k));
  for (; i < count; ++i) lanes[0] = std::max(lanes[0], magnitude(i));
  return *std::max_element(lanes.begin(), lanes.end());
}

// Whether none of the values is NaN or infinite. (Not inline: the linker might take a copy from a
// file that is compiled quickly instead of for speed, see `quick` in the Makefile.)
bool all_finite(std::span<const float> values);

}  // namespace tandem

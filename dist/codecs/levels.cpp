#include "dist/codecs/levels.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "base/error.h"
#include "dist/block.h"
#include "dist/compress/magnitude.h"

namespace tandem {
namespace {

constexpr std::size_t kScaleBytes = sizeof(float);
constexpr std::size_t kGroup = 8;  // elements that are packed together, into `bits` bytes

constexpr int levels_of(int bits) { return (1 << (bits - 1)) - 1; }

// 24 random bits for element i, as a number of [0, 1). (The mixer is Wellons' lowbias32.)
inline float uniform(std::uint32_t key, std::uint32_t i) {
  std::uint32_t x = key + i * 0x9e3779b9U;
  x = (x ^ (x >> 16)) * 0x7feb352dU;
  x = (x ^ (x >> 15)) * 0x846ca68bU;
  x ^= x >> 16;
  return static_cast<float>(static_cast<std::int32_t>(x >> 8)) * 0x1p-24F;
}

// The codes of a block, in groups of eight.
using Codes = std::array<std::uint8_t, kBlock>;

template <int bits>
void pack(const Codes& codes, std::size_t groups, std::byte* to) {
  for (std::size_t g = 0; g < groups; ++g) {
    std::uint64_t word = 0;
    std::memcpy(&word, codes.data() + g * kGroup, kGroup);
    if constexpr (bits < 8) {  // moves the codes together: pairs, then pairs of pairs
      constexpr std::uint64_t kMask = (1ULL << bits) - 1;
      std::uint64_t packed = 0;
      for (std::size_t i = 0; i < kGroup; ++i) packed |= (word >> (8 * i) & kMask) << (bits * i);
      word = packed;
    }
    std::memcpy(to + g * bits, &word, bits);
  }
}

template <int bits>
void unpack(const std::byte* from, std::size_t groups, Codes& codes) {
  for (std::size_t g = 0; g < groups; ++g) {
    std::uint64_t word = 0;
    std::memcpy(&word, from + g * bits, bits);
    if constexpr (bits < 8) {
      constexpr std::uint64_t kMask = (1ULL << bits) - 1;
      std::uint64_t unpacked = 0;
      for (std::size_t i = 0; i < kGroup; ++i) unpacked |= (word >> (bits * i) & kMask) << (8 * i);
      word = unpacked;
    }
    std::memcpy(codes.data() + g * kGroup, &word, kGroup);
  }
}

std::size_t groups_of(std::size_t count) { return (count + kGroup - 1) / kGroup; }

template <int bits>
std::size_t encode(std::span<const float> values, std::uint64_t key, float clip, std::byte* to) {
  constexpr float kSmallest = 1e-35F;  // below this, 1 / scale would overflow
  constexpr int kLevels = levels_of(bits);
  const std::size_t n = values.size();
  float scale =
      std::bit_cast<float>(largest_magnitude_bits(n, [&](std::size_t i) { return values[i]; }));
  if (clip > 0) scale = std::min(scale, clip);
  if (scale < kSmallest) scale = 0;
  const float inverse = scale > 0 ? kLevels / scale : 0;
  std::memcpy(to, &scale, kScaleBytes);

  Codes codes;
  const auto low = static_cast<std::uint32_t>(key ^ key >> 32);
  const float* const v = values.data();
  for (std::size_t i = 0; i < n; ++i) {
    const float size = std::min(std::abs(v[i]) * inverse, static_cast<float>(kLevels));
    const int up = static_cast<int>(size + uniform(low, static_cast<std::uint32_t>(i)));
    const int q = std::min(up, kLevels);  // the addition may round up to the next integer
    codes[i] = static_cast<std::uint8_t>(kLevels + (v[i] < 0 ? -q : q));
  }
  const std::size_t groups = groups_of(n);
  std::fill(codes.begin() + static_cast<std::ptrdiff_t>(n),
            codes.begin() + static_cast<std::ptrdiff_t>(groups * kGroup), std::uint8_t{0});
  pack<bits>(codes, groups, to + kScaleBytes);
  return kScaleBytes + groups * bits;
}

// Calls f(i, the value of element i).
template <int bits, class F>
std::size_t decode(std::span<const std::byte> from, std::size_t count, F&& f) {
  constexpr int kLevels = levels_of(bits);
  const std::size_t groups = groups_of(count), bytes = kScaleBytes + groups * bits;
  require(from.size() >= bytes, "an encoded block has {} bytes instead of {}", from.size(), bytes);
  float scale = 0;
  std::memcpy(&scale, from.data(), kScaleBytes);
  Codes codes;
  unpack<bits>(from.data() + kScaleBytes, groups, codes);
  const float step = scale / kLevels;
  for (std::size_t i = 0; i < count; ++i)
    f(i, static_cast<float>(static_cast<int>(codes[i]) - kLevels) * step);
  return bytes;
}

// Calls f<bits>(), with the number known to the compiler.
template <class F>
auto with_bits(int bits, F&& f) {
  switch (bits) {
    case 2:
      return f.template operator()<2>();
    case 3:
      return f.template operator()<3>();
    case 4:
      return f.template operator()<4>();
    case 5:
      return f.template operator()<5>();
    case 6:
      return f.template operator()<6>();
    case 7:
      return f.template operator()<7>();
    default:
      require(bits == 8, "{} bits", bits);
      return f.template operator()<8>();
  }
}

}  // namespace

std::size_t level_bytes(int bits, std::int64_t count) {
  return kScaleBytes + groups_of(static_cast<std::size_t>(count)) * static_cast<std::size_t>(bits);
}

std::size_t encode_levels(int bits, std::span<const float> values, std::uint64_t key, float clip,
                          std::byte* to) {
  return with_bits(bits, [&]<int b>() { return encode<b>(values, key, clip, to); });
}

std::size_t add_levels(int bits, std::span<const std::byte> from, std::span<float> sum) {
  float* const out = sum.data();
  return with_bits(bits, [&]<int b>() {
    return decode<b>(from, sum.size(), [&](std::size_t i, float v) { out[i] += v; });
  });
}

std::size_t decode_levels(int bits, std::span<const std::byte> from, std::span<float> values) {
  float* const out = values.data();
  return with_bits(bits, [&]<int b>() {
    return decode<b>(from, values.size(), [&](std::size_t i, float v) { out[i] = v; });
  });
}

}  // namespace tandem

#include "dist/codecs/levels.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "dist/codecs/bit_planes.h"
#include "dist/compress/magnitude.h"

namespace tandem {
namespace {

constexpr std::size_t kScaleBytes = sizeof(float);

constexpr int levels_of(int bits) { return (1 << (bits - 1)) - 1; }

// Two elements share the bits of a random number, because drawing takes most of the time.
constexpr std::size_t kHalf = kBlock / 2;
using RandomBits = std::array<std::uint32_t, kHalf>;

// Independent streams of Marsaglia's xorshift. The mixer of their seeds is Wellons' lowbias32.
void draw(std::uint64_t key, RandomBits& random) {
  constexpr std::size_t kStreams = 32;
  std::array<std::uint32_t, kStreams> states;
  for (std::size_t k = 0; k < kStreams; ++k) {
    std::uint32_t x =
        static_cast<std::uint32_t>(key ^ key >> 32) + static_cast<std::uint32_t>(k) * 0x9e3779b9U;
    x = (x ^ (x >> 16)) * 0x7feb352dU;
    x = (x ^ (x >> 15)) * 0x846ca68bU;
    states[k] = (x ^ (x >> 16)) | 1U;  // a state of 0 would stay 0
  }
  for (std::size_t i = 0; i < kHalf; i += kStreams)
    for (std::size_t k = 0; k < kStreams; ++k) {
      std::uint32_t x = states[k];
      x ^= x << 13;
      x ^= x >> 17;
      x ^= x << 5;
      random[i + k] = states[k] = x;
    }
}

// Codes of up to half a block. They count levels in 2^16 parts. The sum with one of 2^16 equally
// likely numbers is rounded down, so the mean is right to half a part.
template <int bits, int shift>
void round_at_random(std::span<const float> values, float parts_per_unit,
                     const std::uint32_t* random, std::uint8_t* __restrict codes) {
  constexpr float kZero = levels_of(bits) * 0x1p16F + 0.5F;  // rounds to the nearest part
  constexpr float kMost = 2 * levels_of(bits) * 0x1p16F + 0.5F;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float size = values[i] * parts_per_unit + kZero;
    // Cut as an integer, which takes two operations: positive floats have the order of integers.
    const std::int32_t cut =
        std::clamp(std::bit_cast<std::int32_t>(size), 0, std::bit_cast<std::int32_t>(kMost));
    const auto in_parts =
        static_cast<std::uint32_t>(static_cast<std::int32_t>(std::bit_cast<float>(cut)));
    codes[i] = static_cast<std::uint8_t>((in_parts + (random[i] >> shift & 0xffffU)) >> 16);
  }
}

template <int bits>
std::size_t encode(std::span<const float> values, std::uint64_t key, float clip, std::byte* to) {
  constexpr float kSmallest = 1e-31F;  // below this, the parts per unit would overflow
  constexpr int kLevels = levels_of(bits);
  const std::size_t n = values.size();
  float scale =
      std::bit_cast<float>(largest_magnitude_bits(n, [&](std::size_t i) { return values[i]; }));
  if (clip > 0) scale = std::min(scale, clip);
  if (scale < kSmallest) scale = 0;
  std::memcpy(to, &scale, kScaleBytes);

  Codes codes;
  if (scale > 0 && std::isfinite(scale)) {
    RandomBits random;
    draw(key, random);
    const std::size_t half = std::min(n, kHalf);
    const float parts_per_unit = kLevels * 0x1p16F / scale;
    round_at_random<bits, 0>(values.first(half), parts_per_unit, random.data(), codes.data());
    round_at_random<bits, 16>(values.subspan(half), parts_per_unit, random.data(),
                              codes.data() + half);
  } else {  // zeros, or NaN
    std::fill_n(codes.begin(), n, static_cast<std::uint8_t>(kLevels));
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

// Signed 8-bit integers that count steps. A step is 1/127 of the block's largest magnitude. A block
// takes 4 bytes for this scale and 1 byte per element. The error is at most half a step.
//
// The scale is rounded up to 17 bits of mantissa, so that its products with 7-bit integers are
// exact. Therefore compressing a compressed value again does not change it.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>

#include "dist/block.h"
#include "dist/compress/compressor.h"
#include "dist/compress/magnitude.h"

namespace tandem {
namespace {

constexpr std::size_t kElements = kBlock;
constexpr std::size_t kScaleBytes = sizeof(float);

// One block: the scale, then the integers.
void pack_block(const float* __restrict values, std::size_t count, std::byte* __restrict packed) {
  constexpr float kSmallest = 1e-35F;  // below this, 1 / scale would overflow
  const std::uint32_t largest_bits =
      largest_magnitude_bits(count, [&](std::size_t i) { return values[i]; });
  const float largest = std::bit_cast<float>(largest_bits);
  const bool finite = largest_bits < kInfinityBits;
  const bool zero = largest < kSmallest;
  const float step =
      std::bit_cast<float>((std::bit_cast<std::uint32_t>(largest / 127) + 0x7fU) & ~0x7fU);
  const float scale = !finite ? std::numeric_limits<float>::quiet_NaN() : zero ? 0 : step;
  const float inverse = finite && !zero ? 1 / step : 0;
  std::memcpy(packed, &scale, kScaleBytes);

  // Adding 1.5·2²³ rounds to the nearest integer and leaves it in the low bits of the mantissa.
  constexpr float kRound = 12582912.0F;
  auto* out = reinterpret_cast<std::int8_t*>(packed + kScaleBytes);
  for (std::size_t i = 0; i < count; ++i)
    out[i] = static_cast<std::int8_t>(std::bit_cast<std::int32_t>(values[i] * inverse + kRound));
}

float scale_of(const std::byte* packed) {
  float scale = 0;
  std::memcpy(&scale, packed, kScaleBytes);
  return scale;
}

void unpack_block(const std::byte* __restrict packed, std::size_t count, float* __restrict values) {
  const float scale = scale_of(packed);
  const auto* in = reinterpret_cast<const std::int8_t*>(packed + kScaleBytes);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(in[i]) * scale;
}

void unpack_block_add(const std::byte* __restrict packed, const float* __restrict own,
                      std::size_t count, float* __restrict sum) {
  const float scale = scale_of(packed);
  const auto* in = reinterpret_cast<const std::int8_t*>(packed + kScaleBytes);
  for (std::size_t i = 0; i < count; ++i) sum[i] = static_cast<float>(in[i]) * scale + own[i];
}

// Calls f(first element, elements, first byte) for every block of a run.
template <class F>
void for_each_block(std::size_t count, F&& f) {
  for (std::size_t i = 0, byte = 0; i < count; i += kElements, byte += kScaleBytes + kElements)
    f(i, std::min(kElements, count - i), byte);
}

class Quant8 : public Compressor {
 public:
  const char* name() const override { return "quant8"; }
  Packing packing() const override { return Packing::quant8; }

  std::size_t bytes(std::int64_t count) const override {
    const auto n = static_cast<std::size_t>(count);
    return n + (n + kElements - 1) / kElements * kScaleBytes;
  }

  void compress(std::span<const float> values, std::span<std::byte> packed) const override {
    for_each_block(values.size(), [&](std::size_t i, std::size_t count, std::size_t byte) {
      pack_block(values.data() + i, count, packed.data() + byte);
    });
  }

  void decompress(std::span<const std::byte> packed, std::span<float> values) const override {
    for_each_block(values.size(), [&](std::size_t i, std::size_t count, std::size_t byte) {
      unpack_block(packed.data() + byte, count, values.data() + i);
    });
  }

  void add(std::span<const std::byte> received, std::span<const float> values,
           std::span<std::byte> packed) const override {
    for_each_block(values.size(), [&](std::size_t i, std::size_t count, std::size_t byte) {
      std::array<float, kElements> sum;  // stays in the L1 cache
      unpack_block_add(received.data() + byte, values.data() + i, count, sum.data());
      pack_block(sum.data(), count, packed.data() + byte);
    });
  }
};

}  // namespace

std::unique_ptr<Compressor> make_quant8() { return std::make_unique<Quant8>(); }

}  // namespace tandem

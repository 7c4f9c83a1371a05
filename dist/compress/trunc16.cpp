// The high 16 bits of each f32: sign, exponent and 7 bits of mantissa. It takes 2 bytes per
// element. The relative error is below 2⁻⁷, always towards zero.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "dist/compress/compressor.h"
#include "dist/compress/magnitude.h"

namespace tandem {
namespace {

// Elements per piece. A piece stays in the L1 cache between two passes.
constexpr std::size_t kPiece = 1024;

float unpack(std::uint16_t half) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16);
}

void pack_piece(const float* __restrict values, std::size_t count, std::uint16_t* __restrict out) {
  const std::uint32_t largest = largest_magnitude_bits(count, [&](std::size_t i) {
    out[i] = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(values[i]) >> 16);
    return values[i];
  });
  if (largest <= kInfinityBits) return;
  // A NaN whose only set mantissa bits are in the low half would become infinity. Setting a high
  // bit keeps it a NaN.
  for (std::size_t i = 0; i < count; ++i)
    if (values[i] != values[i]) out[i] |= 0x0040;
}

// Calls f(first element, elements) for every piece of a run.
template <class F>
void for_each_piece(std::size_t count, F&& f) {
  for (std::size_t i = 0; i < count; i += kPiece) f(i, std::min(kPiece, count - i));
}

class Trunc16 : public Compressor {
 public:
  const char* name() const override { return "trunc16"; }
  Packing packing() const override { return Packing::trunc16; }

  std::size_t bytes(std::int64_t count) const override {
    return static_cast<std::size_t>(count) * sizeof(std::uint16_t);
  }

  void compress(std::span<const float> values, std::span<std::byte> packed) const override {
    auto* out = reinterpret_cast<std::uint16_t*>(packed.data());
    for_each_piece(values.size(), [&](std::size_t i, std::size_t count) {
      pack_piece(values.data() + i, count, out + i);
    });
  }

  void decompress(std::span<const std::byte> packed, std::span<float> values) const override {
    const auto* in = reinterpret_cast<const std::uint16_t*>(packed.data());
    float* __restrict out = values.data();
    for (std::size_t i = 0; i < values.size(); ++i) out[i] = unpack(in[i]);
  }

  void add(std::span<const std::byte> received, std::span<const float> values,
           std::span<std::byte> packed) const override {
    const auto* in = reinterpret_cast<const std::uint16_t*>(received.data());
    auto* out = reinterpret_cast<std::uint16_t*>(packed.data());
    for_each_piece(values.size(), [&](std::size_t i, std::size_t count) {
      std::array<float, kPiece> sum;  // a copy, because `packed` may be `received`
      for (std::size_t k = 0; k < count; ++k) sum[k] = unpack(in[i + k]) + values[i + k];
      pack_piece(sum.data(), count, out + i);
    });
  }
};

}  // namespace

std::unique_ptr<Compressor> make_trunc16() { return std::make_unique<Trunc16>(); }

}  // namespace tandem

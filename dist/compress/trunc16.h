#pragma once

#include "dist/compress/compressor.h"

namespace tandem {

// The high 16 bits of each f32 (sign, exponent, 7 bits of mantissa): 2 bytes an element, a relative
// error below 2⁻⁷, always towards zero.
class Trunc16 : public Compressor {
 public:
  const char* name() const override { return "trunc16"; }
  std::size_t bytes(std::int64_t count) const override;
  void compress(std::span<const float> values, std::span<std::byte> packed) const override;
  void decompress(std::span<const std::byte> packed, std::span<float> values) const override;
  void add(std::span<const std::byte> received, std::span<const float> values,
           std::span<std::byte> packed) const override;
};

}  // namespace tandem

#pragma once

#include "dist/compress/compressor.h"

namespace tandem {

// Signed 8-bit integers, as multiples of the largest magnitude of their block over 127: 4 bytes of
// scale a block and 1 byte an element, an error of at most half a step, 1/254 of that magnitude.
class Quant8 : public Compressor {
 public:
  const char* name() const override { return "quant8"; }
  std::size_t bytes(std::int64_t count) const override;
  void compress(std::span<const float> values, std::span<std::byte> packed) const override;
  void decompress(std::span<const std::byte> packed, std::span<float> values) const override;
  void add(std::span<const std::byte> received, std::span<const float> values,
           std::span<std::byte> packed) const override;
};

}  // namespace tandem

#pragma once

#include "dist/compress/compressor.h"

namespace tandem {

// The f32 values themselves: 4 bytes an element, nothing lost.
class NoCompression : public Compressor {
 public:
  const char* name() const override { return "none"; }
  std::size_t bytes(std::int64_t count) const override;
  void compress(std::span<const float> values, std::span<std::byte> packed) const override;
  void decompress(std::span<const std::byte> packed, std::span<float> values) const override;
  void add(std::span<const std::byte> received, std::span<const float> values,
           std::span<std::byte> packed) const override;
};

}  // namespace tandem

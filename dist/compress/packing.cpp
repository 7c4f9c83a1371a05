#include "dist/compress/packing.h"

#include <array>

#include "tensor/error.h"

namespace tandem {

void round_to_compressed(const Compressor& compressor, std::span<float> flat) {
  if (compressor.lossless()) return;
  std::array<std::byte, kBlock * sizeof(float)> packed;  // stays in the first-level cache
  require(compressor.bytes(kBlock) <= packed.size(), "{} makes a block larger", compressor.name());
  const auto count = static_cast<std::int64_t>(flat.size());
  for (std::int64_t b = 0; b < blocks_of(count); ++b) {
    const auto block = block_of(flat, b);
    const auto bytes =
        std::span(packed).first(compressor.bytes(static_cast<std::int64_t>(block.size())));
    compressor.compress(block, bytes);
    compressor.decompress(bytes, block);
  }
}

}  // namespace tandem

#include "dist/compress/rounding.h"

#include <algorithm>
#include <array>

#include "dist/block.h"
#include "tensor/error.h"

namespace tandem {

void round_to_compressed(const Compressor& compressor, std::span<float> flat) {
  if (compressor.lossless()) return;
  std::array<std::byte, kBlock * sizeof(float)> packed;  // stays in the first-level cache
  require(compressor.bytes(kBlock) <= packed.size(), "{} makes a block larger", compressor.name());
  for (std::size_t i = 0; i < flat.size(); i += kBlock) {
    const auto block = flat.subspan(i, std::min<std::size_t>(kBlock, flat.size() - i));
    const auto bytes = std::span(packed).first(compressor.bytes(std::ssize(block)));
    compressor.compress(block, bytes);
    compressor.decompress(bytes, block);
  }
}

}  // namespace tandem

#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "dist/block.h"
#include "dist/compress/compressor.h"

namespace tandem::test {

// Replaces every value by what it is after compression and decompression. `flat` begins at a block.
inline void round_to_compressed(const Compressor& compressor, std::span<float> flat) {
  std::vector<std::byte> packed(compressor.bytes(std::ssize(flat)));
  compressor.compress(flat, packed);
  compressor.decompress(packed, flat);
}

}  // namespace tandem::test

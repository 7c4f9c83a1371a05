#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "dist/block.h"
#include "dist/compress/compressor.h"
#include "tensor/staging.h"

namespace tandem::test {

// Replaces every value by what it is after compression and decompression. `flat` begins at a block.
inline void round_to_compressed(const Compressor& compressor, std::span<float> flat) {
  std::vector<std::byte> packed(compressor.bytes(std::ssize(flat)));
  compressor.compress(flat, packed);
  compressor.decompress(packed, flat);
}

// The packed bytes of a segment, computed on the host.
inline std::vector<std::byte> packed_on_host(const Compressor& compressor,
                                             const std::vector<float>& all,
                                             const Segment& segment) {
  std::vector<float> values;
  segment.for_each_run(kBlock, [&](std::int64_t first, std::int64_t, std::int64_t n) {
    values.insert(values.end(), all.begin() + first, all.begin() + first + n);
  });
  std::vector<std::byte> packed(compressor.bytes(segment.count));
  compressor.compress(values, packed);
  return packed;
}

}  // namespace tandem::test

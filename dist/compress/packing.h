// Segments of a flat gradient as the bytes of a message: its blocks, compressed, one after the
// other.
#pragma once

#include <cstddef>
#include <span>

#include "dist/block.h"
#include "dist/compress/compressor.h"

namespace tandem {

// Calls f(block of the flat buffer, its bytes in the message) for every block of the segment.
template <class T, class Byte, class F>
void for_each_block(const Compressor& compressor, const Segment& segment, std::span<T> flat,
                    std::span<Byte> packed, F&& f) {
  const std::size_t stride = compressor.bytes(kBlock);
  for (std::int64_t i = 0; i < segment.blocks; ++i) {
    const std::span<T> block = block_of(flat, segment.block(i));
    f(block, packed.subspan(static_cast<std::size_t>(i) * stride,
                            compressor.bytes(static_cast<std::int64_t>(block.size()))));
  }
}

inline void compress_segment(const Compressor& compressor, const Segment& segment,
                             std::span<const float> flat, std::span<std::byte> packed) {
  for_each_block(compressor, segment, flat, packed,
                 [&](auto block, auto bytes) { compressor.compress(block, bytes); });
}

inline void decompress_segment(const Compressor& compressor, const Segment& segment,
                               std::span<const std::byte> packed, std::span<float> flat) {
  for_each_block(compressor, segment, flat, packed,
                 [&](auto block, auto bytes) { compressor.decompress(bytes, block); });
}

// Replaces every value by what it is after compression and decompression. A rank's contribution to
// a sum is what the others would see of it, whoever does the adding. `flat` begins at a block.
void round_to_compressed(const Compressor& compressor, std::span<float> flat);

}  // namespace tandem

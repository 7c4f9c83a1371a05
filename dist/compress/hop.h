#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/thread_pool.h"
#include "dist/compress/compressor.h"
#include "tensor/staging.h"

namespace tandem {

// One hop of the ring for a segment: `sum` becomes the compressed sum of `received` and `own`,
// which are compressed as well. A rank always contributes its compressed values, so the sum does
// not depend on which rank adds. `sum` may be `received` or `own`. `helpers` share the work and may
// be null. They do not change the result.
void add_received(const Compressor& compressor, const Segment& segment,
                  std::span<const std::byte> received, const ConstPieces& own,
                  std::span<std::byte> sum, ThreadPool* helpers = nullptr);

// All hops of one block at once: `sum` becomes the compressed sum of all ranks' values at byte
// `first`, added in the order of the ring, from the owner's right neighbour to the owner. `sum` may
// be the memory of one rank's values.
void add_in_order(const Compressor& compressor, std::span<const ConstPieces> ranks, int owner,
                  std::size_t first, std::int64_t count, std::span<std::byte> sum);

// The same for `count` values of consecutive blocks, which begin with `first_block` of the flat
// gradient.
void add_blocks(const Compressor& compressor, std::span<const ConstPieces> ranks,
                std::int64_t first_block, std::int64_t count, const Pieces& sum,
                ThreadPool* helpers = nullptr);

}  // namespace tandem

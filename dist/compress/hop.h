#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/thread_pool.h"
#include "dist/compress/compressor.h"
#include "tensor/staging.h"

namespace tandem {

// One hop of the ring for a segment: `sum` becomes the compressed sum of what was received and of
// this rank's own values, which are compressed too. A rank always contributes its compressed
// values, so the sum does not depend on who adds. `sum` may be `received` or `own`.
// `helpers` share the work; null for none. The result does not depend on them.
void add_received(const Compressor& compressor, const Segment& segment,
                  std::span<const std::byte> received, const ConstPieces& own,
                  std::span<std::byte> sum, ThreadPool* helpers = nullptr);

// All hops of one block at once: `sum` becomes the compressed sum of the values that the ranks have
// at byte `first`, added in the order of the ring, from the owner's right neighbour to the owner.
// `sum` may be the place of one rank's values.
void add_in_order(const Compressor& compressor, std::span<const ConstPieces> ranks, int owner,
                  std::size_t first, std::int64_t count, std::span<std::byte> sum);

}  // namespace tandem

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/thread_pool.h"
#include "dist/compress/compressor.h"

namespace tandem {

// One hop of the ring for `count` values from the start of a block: replaces this rank's compressed
// values, `own`, by the compressed sum of `received` and `own`. A rank always contributes its
// compressed values, so the sum does not depend on who adds. `helpers` share the work; null for
// none. The result does not depend on them.
void add_received(const Compressor& compressor, std::span<const std::byte> received,
                  std::int64_t count, std::span<std::byte> own, ThreadPool* helpers = nullptr);

}  // namespace tandem

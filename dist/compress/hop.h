#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/thread_pool.h"
#include "dist/compress/compressor.h"

namespace tandem {

// One hop of the ring for `count` values from the beginning of a block on: what was received and
// this rank's own values, which are compressed too, become their compressed sum, in `own`. A rank's
// contribution to a sum is what the others would see of it, whoever does the adding.
// `helpers` share the work; null for none. The bits do not depend on them.
void add_received(const Compressor& compressor, std::span<const std::byte> received,
                  std::int64_t count, std::span<std::byte> own, ThreadPool* helpers = nullptr);

}  // namespace tandem

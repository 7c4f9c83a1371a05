// What pooling operations share: windows over [n, h, w, c], with the channels innermost.
#pragma once

#include "tensor/backend.h"

namespace tandem {

// The part of a window at `position` that lies inside `size` pixels: [begin, end), and the position
// of `begin` in the window.
struct PoolWindow {
  PoolWindow(const Pool& pool, std::int64_t position, std::int64_t size) {
    const std::int64_t start = position * pool.stride - pool.padding;
    begin = start < 0 ? 0 : start;
    end = start + pool.window < size ? start + pool.window : size;
    offset = begin - start;
  }
  std::int64_t begin, end, offset;
};

}  // namespace tandem

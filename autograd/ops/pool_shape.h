// What max_pool and average_pool ask of their input.
#pragma once

#include "tensor/backend.h"

namespace tandem {

// The shape of the result. Throws where windows and images do not fit, as PyTorch does.
inline Shape pool_shape(const Pool& pool, const Shape& x) {
  require(pool.window >= 1 && pool.window <= Pool::kLargestWindow && pool.stride >= 1 &&
              pool.padding >= 0 && 2 * pool.padding <= pool.window,
          "pooling cannot have window {}, stride {} and padding {}: windows are at most {} wide "
          "and padding at most half of that",
          pool.window, pool.stride, pool.padding, Pool::kLargestWindow);
  require(x.rank() == 4 && x[1] >= 1 && x[2] >= 1 && pool.positions(x[1]) >= 1 &&
              pool.positions(x[2]) >= 1,
          "pooling with window {} cannot take input {}", pool.window, x);
  return {x[0], pool.positions(x[1]), pool.positions(x[2]), x[3]};
}

}  // namespace tandem

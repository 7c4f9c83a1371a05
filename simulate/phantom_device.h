// A device whose tensors have sizes but no content (base/phantom_memory.h). It takes the time of an
// update, and computes nothing.
#pragma once

#include <memory>

#include "dist/compress/compressor.h"
#include "tensor/device.h"

namespace tandem {

// What a host needs for its part of communication, in seconds per element of the gradient.
struct HostCost {
  double check = 0;     // to check that it is finite
  double compress = 0;  // for every value that a rank sends first, and decompress for every sum
  double decompress = 0;
  double add = 0;  // with (de)compression
  double copy = 0;
  double update = 0;
};

// For one rank. `cost` must outlive it.
Device phantom_device(const HostCost& cost);

// The sizes of `compressor` for gradients without content: it takes time instead of compressing and
// adding. `cost` must outlive it.
std::unique_ptr<Compressor> without_content(std::unique_ptr<Compressor> compressor,
                                            const HostCost& cost);

}  // namespace tandem

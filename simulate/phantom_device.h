// A device whose tensors have sizes but no content (base/phantom_memory.h). It takes the time of an
// update, and computes nothing.
#pragma once

#include <cstdint>
#include <memory>

#include "dist/compress/compressor.h"
#include "dist/timing/profile.h"
#include "tensor/device.h"

namespace tandem {

// What a host does for so many elements takes this long. Call it on a rank's thread.
void host_works(std::int64_t elements, double seconds_per_element);

// For one rank. `cost` must outlive it.
Device phantom_device(const HostCost& cost);

// The sizes of `compressor` for gradients without content: it takes time instead of compressing and
// adding. `cost` must outlive it.
std::unique_ptr<Compressor> without_content(std::unique_ptr<Compressor> compressor,
                                            const HostCost& cost);

}  // namespace tandem

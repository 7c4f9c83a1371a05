// How long work takes on a GPU, for choosing between ways of doing it. `work` queues on `stream`.
// It is called several times, so it must leave no trace that matters. Both functions wait for the
// stream.
#pragma once

#include <cuda_runtime.h>

#include <limits>

#include "base/function_ref.h"

namespace tandem::cuda {

// The shortest time of several, in microseconds, without the host's share: `work` is recorded as a
// graph. For work that allocates nothing.
double microseconds(cudaStream_t stream, FunctionRef<void()> work);

// The shortest time of a few, in milliseconds, launched by the host. For longer work, which may
// allocate. Gives up early on what is much slower than `best`.
float milliseconds(cudaStream_t stream, FunctionRef<void()> work,
                   float best = std::numeric_limits<float>::infinity());

}  // namespace tandem::cuda

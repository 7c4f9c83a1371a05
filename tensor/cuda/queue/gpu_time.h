// Measures how long work takes on a GPU, to choose between implementations. `work` queues on
// `stream`. It is called several times, so repeating it must do no harm. Both functions wait for
// the stream.
#pragma once

#include <cuda_runtime.h>

#include <limits>

#include "base/function_ref.h"

namespace tandem::cuda {

// The shortest of several times, in microseconds. It excludes launches by the host, because `work`
// is recorded as a graph. For work that allocates nothing.
double microseconds(cudaStream_t stream, FunctionRef<void()> work);

// The shortest of a few times, in milliseconds. The host launches the work. For longer work, which
// may allocate. Gives up early if the work is much slower than `best`.
float milliseconds(cudaStream_t stream, FunctionRef<void()> work,
                   float best = std::numeric_limits<float>::infinity());

}  // namespace tandem::cuda

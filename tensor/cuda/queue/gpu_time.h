// How long work takes on a GPU, for choosing between ways of doing it.
#pragma once

#include <cuda_runtime.h>

#include "base/function_ref.h"

namespace tandem::cuda {

// Microseconds of what `work` queues on `stream`: the best of several times, without the host's
// share. `work` is called many times, once while the stream is recorded as a graph; it must leave
// no trace that matters. Waits for the stream.
double microseconds(cudaStream_t stream, FunctionRef<void()> work);

}  // namespace tandem::cuda

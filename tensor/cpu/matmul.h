// Matrix products of the CPU backend: OpenBLAS, single-threaded, on tiles of the output.
#pragma once

#include <span>

#include "base/thread_pool.h"
#include "tensor/backend.h"

namespace tandem {

void matmul(std::span<const Matmul> products, ThreadPool& threads);

// Tells OpenBLAS, once per process, to use no threads of its own.
void use_single_threaded_blas();

}  // namespace tandem

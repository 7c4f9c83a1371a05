// Local response normalisation of the CPU backend (Krizhevsky et al., 2012, section 3.3).
#pragma once

#include "base/thread_pool.h"
#include "tensor/backend.h"

namespace tandem {

void local_response_norm(const LocalResponseNorm& norm, const Tensor& x, const Tensor& y,
                         ThreadPool& threads);
void local_response_norm_gradient(const LocalResponseNorm& norm, const Tensor& x, const Tensor& dy,
                                  const Tensor& dx, bool accumulate, ThreadPool& threads);

}  // namespace tandem

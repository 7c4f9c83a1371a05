// Convolutions of the CPU backend. See docs/convolution.md.
#pragma once

#include "base/thread_pool.h"
#include "tensor/backend.h"

namespace tandem {

void conv2d(const Convolution& convolution, const Tensor& x, const Tensor& filter,
            const Tensor& bias, const Tensor& y, ThreadPool& threads);
void conv2d_data_gradient(const Convolution& convolution, const Tensor& dy, const Tensor& filter,
                          const Tensor& dx, bool accumulate, ThreadPool& threads);
void conv2d_filter_gradient(const Convolution& convolution, const Tensor& x, const Tensor& dy,
                            const Tensor& dfilter, bool accumulate, ThreadPool& threads);

}  // namespace tandem

// Batch normalisation of the CPU backend, for x[…, c] with the channels innermost. Memory traffic
// decides how fast it is, so it is done in as few passes as the mathematics allows:
//
//   forward    1. statistics          reads x
//              2. y                   reads x (and the residual), writes y
//   backward   1. Σ dy', Σ dy'·(x-µ)  reads x, dy (and y; writes the residual's gradient)
//              2. dx                  reads x, dy (or the residual's gradient), writes dx
//
// where dy' is dy behind the ReLU. Without a residual its mask is made from x again, in the very
// arithmetic of forward, which costs nothing beside reading y.
#pragma once

#include "base/thread_pool.h"
#include "tensor/backend.h"

namespace tandem {

void batch_statistics(const Tensor& x, double epsilon, const Tensor& mean,
                      const Tensor& inverse_deviation, const RunningStatistics& running,
                      ThreadPool& threads);
void inverse_deviation(const Tensor& variance, double epsilon, const Tensor& result);
void channel_norm(const ChannelNorm& norm, const Tensor& x, const Tensor& residual, const Tensor& y,
                  ThreadPool& threads);
void channel_norm_gradient(const ChannelNorm& norm, const Tensor& x, const Tensor& y,
                           const Tensor& dy, const ChannelNormGradients& into, ThreadPool& threads);

}  // namespace tandem

// Pooling of the CPU backend: windows over [n, h, w, c], the channels innermost.
#pragma once

#include "base/thread_pool.h"
#include "tensor/backend.h"

namespace tandem {

void max_pool(const Pool& pool, const Tensor& x, const Tensor& y, const Tensor& winners,
              ThreadPool& threads);
void max_pool_gradient(const Pool& pool, const Tensor& winners, const Tensor& dy, const Tensor& dx,
                       bool accumulate, ThreadPool& threads);
void average_pool(const Pool& pool, const Tensor& x, const Tensor& y, ThreadPool& threads);
void average_pool_gradient(const Pool& pool, const Tensor& dy, const Tensor& dx, bool accumulate,
                           ThreadPool& threads);
void adaptive_average_pool(const Tensor& x, const Tensor& y, ThreadPool& threads);
void adaptive_average_pool_gradient(const Tensor& dy, const Tensor& dx, bool accumulate,
                                    ThreadPool& threads);
void global_average_pool(const Tensor& x, const Tensor& y, ThreadPool& threads);
void global_average_pool_gradient(const Tensor& dy, const Tensor& dx, bool accumulate,
                                  ThreadPool& threads);

// The part of a window at `position` that lies inside `size` pixels: [begin, end), and the place of
// `begin` in the window.
struct PoolWindow {
  PoolWindow(const Pool& pool, std::int64_t position, std::int64_t size) {
    const std::int64_t start = position * pool.stride - pool.padding;
    begin = start < 0 ? 0 : start;
    end = start + pool.window < size ? start + pool.window : size;
    offset = begin - start;
  }
  std::int64_t begin, end, offset;
};

}  // namespace tandem

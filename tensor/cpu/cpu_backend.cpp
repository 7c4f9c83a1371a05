#include "tensor/cpu/cpu_backend.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <utility>

#include "tensor/cpu/batch_norm.h"
#include "tensor/cpu/convolution.h"
#include "tensor/cpu/kernels.h"
#include "tensor/cpu/matmul.h"
#include "tensor/cpu/pooling.h"
#include "tensor/cpu/response_norm.h"

namespace tandem {
namespace {

// Elements per tile of an element-wise loop: some 10 µs of work, well above the cost of handing a
// tile to another thread, and within the second-level cache.
constexpr std::int64_t kElements = 32 * 1024;

constexpr auto kAlignment = std::align_val_t{MemoryPool::kAlignment};

std::int64_t rows_per_tile(std::int64_t columns) {
  return std::max<std::int64_t>(1, kElements / std::max<std::int64_t>(1, columns));
}

std::int64_t checked_label(std::int32_t label, std::int64_t classes) {
  require(label >= 0 && label < classes, "label {} is not one of {} classes", label, classes);
  return label;
}

}  // namespace

CpuBackend::CpuBackend(int threads)
    : CpuBackend(
          threads,
          [](std::size_t bytes) { return ::operator new(bytes, kAlignment, std::nothrow); },
          [](void* data) { ::operator delete(data, kAlignment); }) {}

CpuBackend::CpuBackend(int threads, MemoryPool::Allocate allocate, MemoryPool::Free free)
    : Backend(std::move(allocate), std::move(free)), threads_(threads) {
  use_single_threaded_blas();
}

void CpuBackend::copy_from_host(std::span<const std::byte> from, const Tensor& to) {
  if (!from.empty()) std::memcpy(to.raw(), from.data(), from.size());
}

void CpuBackend::copy_to_host(const Tensor& from, std::span<std::byte> to) {
  if (!to.empty()) std::memcpy(to.data(), from.raw(), to.size());
}

void CpuBackend::copy(const Tensor& from, const Tensor& to) {
  std::memcpy(to.raw(), from.raw(), from.bytes());
}

void CpuBackend::fill(const Tensor& x, double value) {
  if (value == 0) {
    std::memset(x.raw(), 0, x.bytes());
    return;
  }
  with_float_type(x.dtype(),
                  [&]<class T>() { std::ranges::fill(x.span<T>(), static_cast<T>(value)); });
}

void CpuBackend::cast(const Tensor& from, const Tensor& to) {
  require(from.dtype() == to.dtype(), "the CPU does not make {} of {}", name_of(to.dtype()),
          name_of(from.dtype()));
  copy(from, to);
}

void CpuBackend::matmul(std::span<const Matmul> products) { tandem::matmul(products, threads_); }

void CpuBackend::linear(const Tensor& x, const Tensor& weight, const Tensor& bias, bool relu_after,
                        const Tensor& y) {
  Backend::matmul({.a = x, .b = weight, .transpose_b = true, .c = y});
  add_bias(bias, y);
  if (relu_after) relu(y, y);
}

void CpuBackend::linear_gradient(const Tensor& x, const Tensor& weight, const Tensor& dy,
                                 bool rectified, const LinearGradients& into) {
  // Both products in one call, since each alone may be too small to fill all threads.
  std::array<Matmul, 2> products;
  std::size_t count = 0;
  if (into.weight.tensor.defined())
    products[count++] = {.a = dy,
                         .transpose_a = true,
                         .b = x,
                         .c = into.weight.tensor,
                         .accumulate = into.weight.accumulate};
  if (into.x.tensor.defined())
    products[count++] = {.a = dy, .b = weight, .c = into.x.tensor, .accumulate = into.x.accumulate};
  matmul(std::span(products).first(count));
  if (rectified && into.x.tensor.defined()) relu_gradient(x, into.x.tensor, into.x.tensor, false);
  if (into.bias.tensor.defined()) sum_rows(dy, into.bias.tensor, into.bias.accumulate);
}

void CpuBackend::add_bias(const Tensor& bias, const Tensor& y) {
  const std::int64_t columns = bias.count();
  if (columns == 0) return;
  with_float_type(y.dtype(), [&]<class T>() {
    threads_.run_ranges(
        y.count() / columns, rows_per_tile(columns), [&](std::int64_t begin, std::int64_t end) {
          kernels::add_bias(bias.data<T>(), y.data<T>() + begin * columns, end - begin, columns);
        });
  });
}

void CpuBackend::sum_rows(const Tensor& x, const Tensor& sums, bool accumulate) {
  const std::int64_t columns = sums.count();
  const std::int64_t rows = columns == 0 ? 0 : x.count() / columns;
  const std::int64_t grain = rows_per_tile(columns);
  const std::int64_t tiles = (rows + grain - 1) / grain;
  if (!accumulate) fill_zero(sums);
  with_float_type(x.dtype(), [&]<class T>() {
    if (tiles <= 1) {
      kernels::add_rows(x.data<T>(), sums.data<T>(), rows, columns);
      return;
    }
    // Every tile has its own row of partial sums; they are added in the order of the tiles.
    const Tensor partial = Tensor::zeros({tiles, columns}, x.dtype(), x.device());
    threads_.run_ranges(rows, grain, [&](std::int64_t begin, std::int64_t end) {
      kernels::add_rows(x.data<T>() + begin * columns, partial.data<T>() + begin / grain * columns,
                        end - begin, columns);
    });
    kernels::add_rows(partial.data<T>(), sums.data<T>(), tiles, columns);
  });
}

void CpuBackend::relu_bias_gradient(const Tensor& y, const Tensor& dy, const Tensor& masked,
                                    const GradientInto& bias) {
  relu_gradient(y, dy, masked, false);
  if (bias.tensor.defined()) sum_rows(masked, bias.tensor, bias.accumulate);
}

void CpuBackend::conv2d(const Convolution& convolution, const Tensor& x, const Tensor& filter,
                        const Tensor& bias, bool relu_after, const Tensor& y) {
  tandem::conv2d(convolution, x, filter, bias, y, threads_);
  if (relu_after) relu(y, y);
}

void CpuBackend::conv2d_data_gradient(const Convolution& convolution, const Tensor& dy,
                                      const Tensor& filter, const Tensor& dx, bool accumulate) {
  tandem::conv2d_data_gradient(convolution, dy, filter, dx, accumulate, threads_);
}

void CpuBackend::conv2d_filter_gradient(const Convolution& convolution, const Tensor& x,
                                        const Tensor& dy, const Tensor& dfilter, bool accumulate) {
  tandem::conv2d_filter_gradient(convolution, x, dy, dfilter, accumulate, threads_);
}

void CpuBackend::max_pool(const Pool& pool, const Tensor& x, const Tensor& y,
                          const Tensor& winners) {
  tandem::max_pool(pool, x, y, winners, threads_);
}

void CpuBackend::max_pool_gradient(const Pool& pool, const Tensor& winners, const Tensor& dy,
                                   const Tensor& dx, bool accumulate) {
  tandem::max_pool_gradient(pool, winners, dy, dx, accumulate, threads_);
}

void CpuBackend::average_pool(const Pool& pool, const Tensor& x, const Tensor& y) {
  tandem::average_pool(pool, x, y, threads_);
}

void CpuBackend::average_pool_gradient(const Pool& pool, const Tensor& dy, const Tensor& dx,
                                       bool accumulate) {
  tandem::average_pool_gradient(pool, dy, dx, accumulate, threads_);
}

void CpuBackend::adaptive_average_pool(const Tensor& x, const Tensor& y) {
  tandem::adaptive_average_pool(x, y, threads_);
}

void CpuBackend::adaptive_average_pool_gradient(const Tensor& dy, const Tensor& dx,
                                                bool accumulate) {
  tandem::adaptive_average_pool_gradient(dy, dx, accumulate, threads_);
}

void CpuBackend::global_average_pool(const Tensor& x, const Tensor& y) {
  tandem::global_average_pool(x, y, threads_);
}

void CpuBackend::global_average_pool_gradient(const Tensor& dy, const Tensor& dx, bool accumulate) {
  tandem::global_average_pool_gradient(dy, dx, accumulate, threads_);
}

void CpuBackend::batch_statistics(const Tensor& x, double epsilon, const Tensor& mean,
                                  const Tensor& inverse_deviation,
                                  const RunningStatistics& running) {
  tandem::batch_statistics(x, epsilon, mean, inverse_deviation, running, threads_);
}

void CpuBackend::inverse_deviation(const Tensor& variance, double epsilon, const Tensor& result) {
  tandem::inverse_deviation(variance, epsilon, result);
}

Tensor CpuBackend::channel_norm(const ChannelNorm& norm, const Tensor& x, const Tensor& residual,
                                const Tensor& y) {
  tandem::channel_norm(norm, x, residual, y, threads_);
  return norm.after == ChannelNorm::After::add_relu ? y : Tensor();
}

void CpuBackend::channel_norm_gradient(const ChannelNorm& norm, const Tensor& x,
                                       const Tensor& positive, const Tensor& dy, const Tensor& more,
                                       const ChannelNormGradients& into) {
  require(!more.defined(), "the CPU takes gradients in one part");
  tandem::channel_norm_gradient(norm, x, positive, dy, into, threads_);
}

void CpuBackend::local_response_norm(const LocalResponseNorm& norm, const Tensor& x,
                                     const Tensor& y) {
  tandem::local_response_norm(norm, x, y, threads_);
}

void CpuBackend::local_response_norm_gradient(const LocalResponseNorm& norm, const Tensor& x,
                                              const Tensor& dy, const Tensor& dx, bool accumulate) {
  tandem::local_response_norm_gradient(norm, x, dy, dx, accumulate, threads_);
}

void CpuBackend::add(const Tensor& a, const Tensor& b, const Tensor& y) {
  with_float_type(y.dtype(), [&]<class T>() {
    threads_.run_ranges(y.count(), kElements, [&](std::int64_t begin, std::int64_t end) {
      kernels::add(a.data<T>() + begin, b.data<T>() + begin, y.data<T>() + begin, end - begin);
    });
  });
}

void CpuBackend::relu(const Tensor& x, const Tensor& y) {
  with_float_type(y.dtype(), [&]<class T>() {
    threads_.run_ranges(y.count(), kElements, [&](std::int64_t begin, std::int64_t end) {
      if (x.raw() == y.raw())
        kernels::relu(y.data<T>() + begin, end - begin);
      else
        kernels::relu(x.data<T>() + begin, y.data<T>() + begin, end - begin);
    });
  });
}

void CpuBackend::relu_gradient(const Tensor& y, const Tensor& dy, const Tensor& dx,
                               bool accumulate) {
  with_float_type(y.dtype(), [&]<class T>() {
    if (dx.raw() == dy.raw()) {
      threads_.run_ranges(y.count(), kElements, [&](std::int64_t begin, std::int64_t end) {
        kernels::relu_gradient(y.data<T>() + begin, dx.data<T>() + begin, end - begin);
      });
      return;
    }
    kernels::with_accumulate(accumulate, [&]<bool kAccumulate>() {
      threads_.run_ranges(y.count(), kElements, [&](std::int64_t begin, std::int64_t end) {
        kernels::relu_gradient<kAccumulate>(y.data<T>() + begin, dy.data<T>() + begin,
                                            dx.data<T>() + begin, end - begin);
      });
    });
  });
}

void CpuBackend::dropout(const Tensor& x, double keep, const StepRandom& step, const Tensor& y,
                         bool accumulate) {
  const Random random = step.random();
  with_float_type(y.dtype(), [&]<class T>() {
    kernels::with_accumulate(accumulate, [&]<bool kAccumulate>() {
      threads_.run_ranges(y.count(), kElements, [&](std::int64_t begin, std::int64_t end) {
        kernels::dropout<kAccumulate>(x.data<T>(), keep, random, y.data<T>(), begin, end);
      });
    });
  });
}

void CpuBackend::softmax_cross_entropy(const Tensor& logits, const Tensor& labels, double smoothing,
                                       double scale, const Tensor& probabilities,
                                       const Tensor& loss) {
  const std::int64_t rows = logits.size(0), classes = logits.size(1);
  const auto* label = labels.data<std::int32_t>();
  const Tensor row_loss = Tensor::empty({rows}, Dtype::f64, logits.device());
  auto* losses = row_loss.data<double>();
  with_float_type(logits.dtype(), [&]<class T>() {
    threads_.run_ranges(rows, rows_per_tile(classes), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        const T* row = logits.data<T>() + r * classes;
        const T log_sum = kernels::softmax_row(row, probabilities.data<T>() + r * classes, classes);
        losses[r] = kernels::cross_entropy_row(row, log_sum, checked_label(label[r], classes),
                                               classes, smoothing);
      }
    });
    double total = 0;
    for (std::int64_t r = 0; r < rows; ++r) total += losses[r];
    *loss.data<T>() = static_cast<T>(scale * total);
  });
}

void CpuBackend::softmax_cross_entropy_gradient(const Tensor& probabilities, const Tensor& labels,
                                                double smoothing, double scale, const Tensor& dloss,
                                                const Tensor& dlogits, bool accumulate) {
  const std::int64_t rows = dlogits.size(0), classes = dlogits.size(1);
  const auto* label = labels.data<std::int32_t>();
  with_float_type(dlogits.dtype(), [&]<class T>() {
    const T row_scale = static_cast<T>(scale) * *dloss.data<T>();
    kernels::with_accumulate(accumulate, [&]<bool kAccumulate>() {
      threads_.run_ranges(rows, rows_per_tile(classes), [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r)
          kernels::cross_entropy_gradient_row<kAccumulate>(probabilities.data<T>() + r * classes,
                                                           label[r], classes, smoothing, row_scale,
                                                           dlogits.data<T>() + r * classes);
      });
    });
  });
}

std::int64_t CpuBackend::count_correct(const Tensor& logits, const Tensor& labels) {
  const std::int64_t rows = logits.size(0), classes = logits.size(1);
  const auto* label = labels.data<std::int32_t>();
  return with_float_type(logits.dtype(), [&]<class T>() {
    std::int64_t correct = 0;
    for (std::int64_t r = 0; r < rows; ++r) {
      const T* row = logits.data<T>() + r * classes;
      correct += std::max_element(row, row + classes) - row == label[r];
    }
    return correct;
  });
}

void CpuBackend::sgd(const SgdStep& step, const Tensor& gradient, const Tensor& momentum,
                     const Tensor& value, const Tensor& low) {
  require(!low.defined(), "the CPU keeps no bf16 weights");
  with_float_type(value.dtype(), [&]<class T>() {
    const T rate = static_cast<T>(step.rate), mu = static_cast<T>(step.momentum),
            decay = static_cast<T>(step.weight_decay);
    threads_.run_ranges(value.count(), kElements, [&](std::int64_t begin, std::int64_t end) {
      const auto update = step.nesterov ? kernels::sgd<true, T> : kernels::sgd<false, T>;
      update(rate, mu, decay, gradient.data<T>() + begin, momentum.data<T>() + begin,
             value.data<T>() + begin, end - begin);
    });
  });
}

}  // namespace tandem

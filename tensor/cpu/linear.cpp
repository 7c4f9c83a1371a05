// Linear layers: products with a weight, and sums over rows and columns.
#include <array>

#include "tensor/cpu/cpu_backend.h"
#include "tensor/cpu/kernels.h"

namespace tandem {
namespace {

template <class T>
void add_bias_to_rows(const T* __restrict bias, T* __restrict y, std::int64_t rows,
                      std::int64_t columns) {
  for (std::int64_t r = 0; r < rows; ++r, y += columns)
    for (std::int64_t c = 0; c < columns; ++c) y[c] += bias[c];
}

}  // namespace

void CpuBackend::linear(const Tensor& x, const Tensor& weight, const Tensor& bias, bool relu_after,
                        const Tensor& y) {
  Backend::matmul({.a = x, .b = weight, .transpose_b = true, .c = y});
  add_bias(bias, y);
  if (relu_after) relu(y, y);
}

void CpuBackend::linear_gradient(const Tensor& x, const Tensor& weight, const Tensor& dy,
                                 bool rectified, const LinearGradients& into) {
  // Both products in one call, because each alone may be too small to use all threads.
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
    threads_.run_ranges(y.count() / columns, kernels::rows_per_tile(columns),
                        [&](std::int64_t begin, std::int64_t end) {
                          add_bias_to_rows(bias.data<T>(), y.data<T>() + begin * columns,
                                           end - begin, columns);
                        });
  });
}

void CpuBackend::sum_rows(const Tensor& x, const Tensor& sums, bool accumulate) {
  const std::int64_t columns = sums.count();
  const std::int64_t rows = columns == 0 ? 0 : x.count() / columns;
  const std::int64_t grain = kernels::rows_per_tile(columns);
  const std::int64_t tiles = (rows + grain - 1) / grain;
  if (!accumulate) fill_zero(sums);
  with_float_type(x.dtype(), [&]<class T>() {
    if (tiles <= 1) {
      kernels::add_rows(x.data<T>(), sums.data<T>(), rows, columns);
      return;
    }
    // Every tile has its own row of partial sums. They are added in the order of the tiles.
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

}  // namespace tandem

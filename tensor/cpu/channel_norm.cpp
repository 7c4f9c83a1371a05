#include "tensor/cpu/channel_norm.h"
#include "tensor/cpu/cpu_backend.h"

#include "tensor/cpu/kernels.h"

namespace tandem {
namespace {

template <int kRows, After kAfter, class T>
void normalize(const T* __restrict x, const T* __restrict residual, T* __restrict y,
               const Coefficients<T>& k, std::int64_t width, std::int64_t columns) {
  const T* __restrict mean = k.mean, * __restrict scale = k.scale, * __restrict bias = k.bias;
  for (std::int64_t c = 0; c < columns; ++c) {
    const T m = mean[c], s = scale[c], b = bias[c];
    for (int r = 0; r < kRows; ++r) {
      T z = normalized(x[r * width + c], m, s, b);
      if constexpr (kAfter == After::add_relu) z = z + residual[r * width + c];
      if constexpr (kAfter != After::nothing) z = kernels::relu_of(z);
      y[r * width + c] = z;
    }
  }
}

}  // namespace

Tensor CpuBackend::channel_norm(const ChannelNorm& norm, const Tensor& x, const Tensor& residual,
                                const Tensor& y) {
  const ChannelRows rows(x.count(), norm.mean.count());
  with_float_type(x.dtype(), [&]<class T>() {
    const Coefficients<T> k(norm, rows, x.device());
    with_after(norm.after, [&]<After kAfter>() {
      threads_.run(rows.tiles(), [&](std::int64_t i) {
        const std::int64_t tile = rows.from_end(i), begin = rows.begin(tile);
        const T *px = x.data<T>() + begin, *pr = or_else(residual, x).data<T>() + begin;
        T* py = y.data<T>() + begin;
        each_group_of_rows(
            rows.length(tile), rows.width(), [&]<int kRows>(std::int64_t j, std::int64_t columns) {
              normalize<kRows, kAfter>(px + j, pr + j, py + j, k, rows.width(), columns);
            });
      });
    });
  });
  return norm.after == After::add_relu ? y : Tensor();
}

}  // namespace tandem

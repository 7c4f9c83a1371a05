// With x̂ = (x - mean)·inverse and n values per channel, where mean and inverse depend on x:
//
//   dbias = Σ dy'      dweight = Σ dy'·x̂      dx = weight·inverse·(dy' - Σ dy'/n - x̂·Σ dy'·x̂/n)
#include "tensor/cpu/channel_norm.h"
#include "tensor/cpu/cpu_backend.h"
#include "tensor/cpu/kernels.h"

namespace tandem {
namespace {

// The gradient of the ReLU's input. `y` is used for add_relu only; it is not negative but may be
// NaN. If an x is NaN, its channel's mean is NaN, and so are dweight and dx, whatever this returns.
// So without a residual the cheaper comparison suffices.
template <After kAfter, class T>
inline T behind_relu(T dy, T x, T y, T mean, T scale, T bias) {
  if constexpr (kAfter == After::relu) return normalized(x, mean, scale, bias) > 0 ? dy : T{0};
  if constexpr (kAfter == After::add_relu) return y == 0 ? T{0} : dy;
  return dy;
}

enum class Residual { none, write, add };

// sums += dy', products += dy'·(x - mean); dresidual = dy' or += dy'.
template <int kRows, After kAfter, Residual kResidual, class T>
void add_sums(const T* __restrict x, const T* __restrict y, const T* __restrict dy,
              T* __restrict dresidual, const Coefficients<T>& k, std::int64_t width,
              std::int64_t columns, T* __restrict sums, T* __restrict products) {
  const T* __restrict mean = k.mean, * __restrict scale = k.scale, * __restrict bias = k.bias;
  for (std::int64_t c = 0; c < columns; ++c) {
    const T m = mean[c], s = scale[c], b = bias[c];
    T sum = sums[c], product = products[c];
    for (int r = 0; r < kRows; ++r) {
      const std::int64_t i = r * width + c;
      const T g =
          behind_relu<kAfter>(dy[i], x[i], kAfter == After::add_relu ? y[i] : T{0}, m, s, b);
      if constexpr (kResidual != Residual::none)
        kernels::put<kResidual == Residual::add>(dresidual[i], g);
      sum += g;
      product += g * (x[i] - m);
    }
    sums[c] = sum;
    products[c] = product;
  }
}

template <int kRows, After kAfter, bool kAccumulate, class T>
void put_dx(const T* __restrict x, const T* __restrict y, const T* __restrict dy, T* __restrict dx,
            const Coefficients<T>& k, std::int64_t width, std::int64_t columns) {
  const T* __restrict mean = k.mean, * __restrict scale = k.scale, * __restrict bias = k.bias, * __restrict slope = k.slope, * __restrict offset = k.offset;
  for (std::int64_t c = 0; c < columns; ++c) {
    const T m = mean[c], s = scale[c], b = bias[c], l = slope[c], o = offset[c];
    for (int r = 0; r < kRows; ++r) {
      const std::int64_t i = r * width + c;
      const T g =
          behind_relu<kAfter>(dy[i], x[i], kAfter == After::add_relu ? y[i] : T{0}, m, s, b);
      kernels::put<kAccumulate>(dx[i], s * g + (l * (x[i] - m) + o));
    }
  }
}

// totals = Σ dy' and Σ dy'·(x - mean) per channel, in double, one row after the other.
template <After kAfter, Residual kResidual, class T>
void sum_gradients(const ChannelRows& rows, const Coefficients<T>& k, const Tensor& x,
                   const Tensor& y, const Tensor& dy, const Tensor& dresidual, const Tensor& totals,
                   ThreadPool& threads) {
  const std::int64_t width = rows.width(), channels = rows.channels();
  const Tensor partial = Tensor::zeros({rows.tiles(), 2 * channels}, Dtype::f64, x.device());
  threads.run(rows.tiles(), [&](std::int64_t tile) {
    const Tensor scratch = Tensor::zeros({2 * width}, x.dtype(), x.device());
    T *sums = scratch.data<T>(), *products = sums + width;
    const std::int64_t begin = rows.begin(tile);
    const T *px = x.data<T>() + begin, *py = or_else(y, x).data<T>() + begin,
            *pdy = dy.data<T>() + begin;
    T* pdr = or_else(dresidual, dy).data<T>() + begin;
    each_group_of_rows(rows.length(tile), width,
                       [&]<int kRows>(std::int64_t i, std::int64_t columns) {
                         add_sums<kRows, kAfter, kResidual>(px + i, py + i, pdy + i, pdr + i, k,
                                                            width, columns, sums, products);
                       });
    double* out = partial.data<double>() + tile * 2 * channels;
    for (const T* from : {sums, products}) {
      for (std::int64_t w = 0; w < width; w += channels)
        for (std::int64_t c = 0; c < channels; ++c) out[c] += static_cast<double>(from[w + c]);
      out += channels;
    }
  });
  totals.backend().fill_zero(totals);
  kernels::add_rows(partial.data<double>(), totals.data<double>(), rows.tiles(), 2 * channels);
}

template <class T>
void put_parameter_gradient(const GradientInto& into, auto value) {
  if (!into.tensor.defined()) return;
  T* out = into.tensor.data<T>();
  for (std::int64_t c = 0; c < into.tensor.count(); ++c) {
    const double before = into.accumulate ? static_cast<double>(out[c]) : 0;
    out[c] = static_cast<T>(before + value(c));
  }
}

template <After kAfter, class T>
void data_gradient(const ChannelRows& rows, const Coefficients<T>& k, const Tensor& x,
                   const Tensor& y, const Tensor& dy, const GradientInto& dx, ThreadPool& threads) {
  kernels::with_accumulate(dx.accumulate, [&]<bool kAccumulate>() {
    threads.run(rows.tiles(), [&](std::int64_t i) {
      const std::int64_t tile = rows.from_end(i), begin = rows.begin(tile);
      const T *px = x.data<T>() + begin, *py = or_else(y, x).data<T>() + begin,
              *pdy = dy.data<T>() + begin;
      T* pdx = dx.tensor.data<T>() + begin;
      each_group_of_rows(rows.length(tile), rows.width(),
                         [&]<int kRows>(std::int64_t j, std::int64_t columns) {
                           put_dx<kRows, kAfter, kAccumulate>(px + j, py + j, pdy + j, pdx + j, k,
                                                              rows.width(), columns);
                         });
    });
  });
}

}  // namespace

void CpuBackend::channel_norm_gradient(const ChannelNorm& norm, const Tensor& x, const Tensor& y,
                                       const Tensor& dy, const Tensor& more,
                                       const ChannelNormGradients& into) {
  require(!more.defined(), "the CPU does not take gradients in two parts");
  const std::int64_t channels = norm.mean.count();
  const ChannelRows rows(x.count(), channels);
  const Tensor totals = Tensor::empty({2, channels}, Dtype::f64, x.device());
  const double *sums = totals.data<double>(), *products = sums + channels;
  with_float_type(x.dtype(), [&]<class T>() {
    const Coefficients<T> k(norm, rows, x.device());
    const T* inverse = norm.inverse_deviation.data<T>();
    const auto dweight = [=](std::int64_t c) {
      return products[c] * static_cast<double>(inverse[c]);
    };
    const auto sum = [&]<After kAfter, Residual kResidual>() {
      sum_gradients<kAfter, kResidual>(rows, k, x, y, dy, into.residual.tensor, totals, threads_);
    };
    if (norm.after == After::nothing)
      sum.template operator()<After::nothing, Residual::none>();
    else if (norm.after == After::relu)
      sum.template operator()<After::relu, Residual::none>();
    else if (!into.residual.tensor.defined())
      sum.template operator()<After::add_relu, Residual::none>();
    else if (into.residual.accumulate)
      sum.template operator()<After::add_relu, Residual::add>();
    else
      sum.template operator()<After::add_relu, Residual::write>();

    put_parameter_gradient<T>(into.weight, dweight);
    put_parameter_gradient<T>(into.bias, [=](std::int64_t c) { return sums[c]; });
    if (!into.x.tensor.defined()) return;

    const auto n = static_cast<double>(rows.count() / std::max<std::int64_t>(1, channels));
    rows.spread(k.slope, [&](std::int64_t c) {
      return static_cast<T>(-static_cast<double>(k.scale[c] * inverse[c]) * dweight(c) / n);
    });
    rows.spread(k.offset, [&](std::int64_t c) {
      return static_cast<T>(-static_cast<double>(k.scale[c]) * sums[c] / n);
    });
    // If the residual's gradient has just been written, it is dy' itself.
    if (into.residual.tensor.defined() && !into.residual.accumulate)
      data_gradient<After::nothing>(rows, k, x, y, into.residual.tensor, into.x, threads_);
    else
      with_after(norm.after, [&]<After kAfter>() {
        data_gradient<kAfter>(rows, k, x, y, dy, into.x, threads_);
      });
  });
}

}  // namespace tandem

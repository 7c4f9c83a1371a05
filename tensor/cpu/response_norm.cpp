// Local response normalisation (Krizhevsky et al., 2012, section 3.3). With s = k + alpha/size · Σ
// x² over the channels c - before … c + after:
//
//   y = x·s^-beta      dx = dy·s^-beta - 2·beta·alpha/size · x · Σ dy·x·s^(-beta-1)
//
// where the last sum is over the channels that depend on x: c - after … c + before. Backward keeps
// only x, because recomputing s is cheaper than reading it.
#include <algorithm>
#include <cmath>

#include "tensor/cpu/cpu_backend.h"
#include "tensor/cpu/kernels.h"

namespace tandem {
namespace {

template <class T>
struct Norm {
  Norm(const LocalResponseNorm& norm, std::int64_t c)
      : size(norm.size),
        before(size / 2),
        after((size - 1) / 2),
        channels(c),
        padded(c + size - 1),
        alpha(static_cast<T>(norm.alpha / static_cast<double>(size))),
        beta(static_cast<T>(norm.beta)),
        k(static_cast<T>(norm.k)) {}

  std::int64_t size, before, after, channels;
  std::int64_t padded;  // channels with zeros at both ends, so that sums need no special cases
  T alpha, beta, k;
};

// sums[c] = Σ row[c … c + size - 1]
template <class T>
void sum_neighbours(const Norm<T>& norm, const T* __restrict row, T* __restrict sums) {
  const std::int64_t channels = norm.channels;
  if (norm.size == 5) {  // the usual size
    for (std::int64_t c = 0; c < channels; ++c)
      sums[c] = row[c] + row[c + 1] + row[c + 2] + row[c + 3] + row[c + 4];
    return;
  }
  std::copy(row, row + channels, sums);
  for (std::int64_t i = 1; i < norm.size; ++i)
    for (std::int64_t c = 0; c < channels; ++c) sums[c] += row[c + i];
}

// s without alpha and k. `squares` has zeros at both ends.
template <class T>
void sum_squares(const Norm<T>& norm, const T* __restrict x, T* __restrict squares,
                 T* __restrict sums) {
  for (std::int64_t c = 0; c < norm.channels; ++c) squares[norm.before + c] = x[c] * x[c];
  sum_neighbours(norm, squares, sums);
}

template <class T>
void put_normalized(const Norm<T>& norm, const T* __restrict x, const T* __restrict sums,
                    T* __restrict y) {
  const T k = norm.k, alpha = norm.alpha, beta = norm.beta;
  if (beta == T{0.75}) {
    for (std::int64_t c = 0; c < norm.channels; ++c) {
      const T root = std::sqrt(k + alpha * sums[c]);
      y[c] = x[c] / (root * std::sqrt(root));
    }
  } else {
    for (std::int64_t c = 0; c < norm.channels; ++c)
      y[c] = x[c] * std::pow(k + alpha * sums[c], -beta);
  }
}

// powers = s^-beta, products = dy·x·s^(-beta-1). The powers may overwrite the sums.
template <class T>
void put_products(const Norm<T>& norm, const T* __restrict x, const T* __restrict dy,
                  T* __restrict sums_then_powers, T* __restrict products) {
  const T k = norm.k, alpha = norm.alpha, beta = norm.beta;
  if (beta == T{0.75}) {
    for (std::int64_t c = 0; c < norm.channels; ++c) {
      const T s = k + alpha * sums_then_powers[c], root = std::sqrt(s);
      const T inverse = T{1} / (s * (root * std::sqrt(root)));
      sums_then_powers[c] = s * inverse;
      products[c] = dy[c] * x[c] * inverse;
    }
  } else {
    for (std::int64_t c = 0; c < norm.channels; ++c) {
      const T s = k + alpha * sums_then_powers[c], power = std::pow(s, -beta);
      sums_then_powers[c] = power;
      products[c] = dy[c] * x[c] * power / s;
    }
  }
}

template <bool kAccumulate, class T>
void put_gradient(const Norm<T>& norm, const T* __restrict x, const T* __restrict dy,
                  const T* __restrict powers, const T* __restrict sums, T* __restrict dx) {
  const T factor = T{2} * norm.beta * norm.alpha;
  for (std::int64_t c = 0; c < norm.channels; ++c)
    kernels::put<kAccumulate>(dx[c], dy[c] * powers[c] - factor * x[c] * sums[c]);
}

// Calls f(first element, buffers) for every pixel. Each tile has its own `buffers` rows, which are
// zero at first.
template <class T, class F>
void each_pixel(const Norm<T>& norm, const Tensor& x, std::int64_t buffers, ThreadPool& threads,
                F&& f) {
  if (x.count() == 0) return;
  const std::int64_t c = norm.channels, grain = std::max<std::int64_t>(1, 8 * 1024 / c);
  threads.run_ranges(x.count() / c, grain, [&](std::int64_t begin, std::int64_t end) {
    const Tensor rows = Tensor::zeros({buffers, norm.padded}, x.dtype(), x.device());
    for (std::int64_t i = begin; i < end; ++i) f(i * c, rows.data<T>());
  });
}

}  // namespace

void CpuBackend::local_response_norm(const LocalResponseNorm& options, const Tensor& x,
                                     const Tensor& y) {
  with_float_type(x.dtype(), [&]<class T>() {
    const Norm<T> norm(options, x.size(-1));
    each_pixel(norm, x, 2, threads_, [&](std::int64_t i, T* squares) {
      T* sums = squares + norm.padded;
      sum_squares(norm, x.data<T>() + i, squares, sums);
      put_normalized(norm, x.data<T>() + i, sums, y.data<T>() + i);
    });
  });
}

void CpuBackend::local_response_norm_gradient(const LocalResponseNorm& options, const Tensor& x,
                                              const Tensor& dy, const Tensor& dx, bool accumulate) {
  with_float_type(x.dtype(), [&]<class T>() {
    const Norm<T> norm(options, x.size(-1));
    kernels::with_accumulate(accumulate, [&]<bool kAccumulate>() {
      each_pixel(norm, x, 4, threads_, [&](std::int64_t i, T* squares) {
        T *powers = squares + norm.padded, *products = powers + norm.padded,
          *sums = products + norm.padded;
        const T *px = x.data<T>() + i, *pdy = dy.data<T>() + i;
        sum_squares(norm, px, squares, powers);
        put_products(norm, px, pdy, powers, products + norm.after);
        sum_neighbours(norm, products, sums);
        put_gradient<kAccumulate>(norm, px, pdy, powers, sums, dx.data<T>() + i);
      });
    });
  });
}

}  // namespace tandem

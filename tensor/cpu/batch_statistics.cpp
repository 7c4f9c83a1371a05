// Mean and variance per channel in one pass over x, accurate even if the mean is much larger than
// the deviation.
//
// In a tile, every column sums d and d² of the differences d = x - K from its own first value K.
// Then M2 = Σ (x - mean)² = Σ d² - (Σ d)²/n. K is one of the n values, so n·(K - mean)² is at most
// n·M2, and cancellation costs at most a factor of n + 1, where n is a few hundred rows. Columns
// and tiles are then combined in double, in a fixed order (Chan, Golub and LeVeque, 1979):
//
//   mean = mean_a + δ·n_b/n      M2 = M2_a + M2_b + δ²·n_a·n_b/n      with δ = mean_b - mean_a
#include <cmath>

#include "tensor/cpu/channel_rows.h"
#include "tensor/cpu/cpu_backend.h"

namespace tandem {
namespace {

template <int kRows, class T>
void add_differences(const T* __restrict x, std::int64_t width, std::int64_t columns,
                     const T* __restrict first, T* __restrict sums, T* __restrict squares) {
  for (std::int64_t c = 0; c < columns; ++c) {
    const T k = first[c];
    if constexpr (kRows == 4) {
      const T d0 = x[c] - k, d1 = x[width + c] - k, d2 = x[2 * width + c] - k,
              d3 = x[3 * width + c] - k;
      sums[c] += (d0 + d1) + (d2 + d3);
      squares[c] += (d0 * d0 + d1 * d1) + (d2 * d2 + d3 * d3);
    } else {
      const T d = x[c] - k;
      sums[c] += d;
      squares[c] += d * d;
    }
  }
}

// The means of n values per channel, and Σ (x - mean)².
struct Moments {
  double* mean;
  double* m2;
  std::int64_t n;
};

void combine(Moments& a, std::int64_t channels, std::int64_t b_n, auto b_mean, auto b_m2) {
  const double n = static_cast<double>(a.n + b_n), share = static_cast<double>(b_n) / n,
               weight = static_cast<double>(a.n) * share;
  double* __restrict mean = a.mean, * __restrict m2 = a.m2;
  for (std::int64_t c = 0; c < channels; ++c) {
    const double delta = b_mean(c) - mean[c];
    mean[c] += delta * share;
    m2[c] += b_m2(c) + delta * delta * weight;
  }
  a.n += b_n;
}

// The moments of a tile's `count` elements. `scratch` has space for two rows.
template <class T>
void tile_moments(const T* x, std::int64_t count, const ChannelRows& rows, T* scratch,
                  Moments& moments) {
  const std::int64_t channels = rows.channels(), width = rows.width();
  T *sums = scratch, *squares = scratch + width;
  std::fill(sums, sums + 2 * width, T{0});
  each_group_of_rows(count, width, [&]<int kRows>(std::int64_t i, std::int64_t columns) {
    add_differences<kRows>(x + i, width, columns, x, sums, squares);
  });

  std::fill(moments.mean, moments.mean + channels, 0.0);
  std::fill(moments.m2, moments.m2 + channels, 0.0);
  moments.n = 0;
  for (std::int64_t first = 0; first < std::min(width, count); first += channels) {
    const std::int64_t n = count / width + (first < count % width ? 1 : 0);
    const double share = 1 / static_cast<double>(n);
    const T *k = x + first, *s = sums + first, *q = squares + first;
    combine(
        moments, channels, n,
        [=](std::int64_t c) {
          return static_cast<double>(k[c]) + static_cast<double>(s[c]) * share;
        },
        [=](std::int64_t c) {
          const double sum = static_cast<double>(s[c]);
          const double m2 = static_cast<double>(q[c]) - sum * sum * share;
          return m2 < 0 ? 0.0 : m2;  // NaN stays NaN
        });
  }
}

}  // namespace

void CpuBackend::batch_statistics(const Tensor& x, double epsilon, const Tensor& mean,
                                  const Tensor& inverse_deviation,
                                  const RunningStatistics& running) {
  const std::int64_t channels = mean.count();
  const ChannelRows rows(x.count(), channels);
  if (rows.count() == 0) return;
  // A row of means and a row of M2 for every tile. At the end the first tile's rows hold the
  // totals.
  const Tensor partial = Tensor::empty({rows.tiles(), 2, channels}, Dtype::f64, x.device());
  const auto moments_of = [&](std::int64_t tile) {
    double* row = partial.data<double>() + tile * 2 * channels;
    return Moments{row, row + channels, rows.length(tile) / channels};
  };
  with_float_type(x.dtype(), [&]<class T>() {
    threads_.run(rows.tiles(), [&](std::int64_t tile) {
      const Tensor scratch = Tensor::empty({2 * rows.width()}, x.dtype(), x.device());
      Moments moments = moments_of(tile);
      tile_moments(x.data<T>() + rows.begin(tile), rows.length(tile), rows, scratch.data<T>(),
                   moments);
    });

    Moments all = moments_of(0);
    for (std::int64_t tile = 1; tile < rows.tiles(); ++tile) {
      const Moments moments = moments_of(tile);
      combine(
          all, channels, moments.n, [=](std::int64_t c) { return moments.mean[c]; },
          [=](std::int64_t c) { return moments.m2[c]; });
    }
    const auto n = static_cast<double>(all.n);
    const double momentum = running.momentum;
    const auto move = [momentum](T& value, double towards) {
      value = static_cast<T>((1 - momentum) * static_cast<double>(value) + momentum * towards);
    };
    for (std::int64_t c = 0; c < channels; ++c) {
      mean.data<T>()[c] = static_cast<T>(all.mean[c]);
      inverse_deviation.data<T>()[c] = static_cast<T>(1 / std::sqrt(all.m2[c] / n + epsilon));
      move(running.mean.data<T>()[c], all.mean[c]);
      move(running.variance.data<T>()[c], all.m2[c] / (n - 1));
    }
  });
}

void CpuBackend::inverse_deviation(const Tensor& variance, double epsilon, const Tensor& result) {
  with_float_type(variance.dtype(), [&]<class T>() {
    for (std::int64_t c = 0; c < variance.count(); ++c)
      result.data<T>()[c] =
          static_cast<T>(1 / std::sqrt(static_cast<double>(variance.data<T>()[c]) + epsilon));
  });
}

}  // namespace tandem

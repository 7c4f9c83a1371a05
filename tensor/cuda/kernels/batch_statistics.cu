// Mean and variance per channel in one pass over x, accurate even if the mean is much larger than
// the deviation. It sums d = x - K and d², where K is the channel's first value. Then mean = K + Σ
// d/n, and Σ (x - mean)² = Σ d² - (Σ d)²/n.
#include "tensor/cuda/kernels/channel_sums.cuh"

namespace tandem::cuda {
namespace {

constexpr int kUnroll = 4;
constexpr int kBlocks = 2;  // per multiprocessor

struct Counts {
  double share;           // 1/n
  double unbiased_share;  // 1/(n - 1)
};

template <class T, int V>
__global__ void __launch_bounds__(kSumThreads, kBlocks)
    statistics_kernel(RowWalk walk, const T* x, BatchStatistics into, Counts counts,
                      SumScratch scratch) {
  const Place<V> place(walk);
  float sums[V] = {}, squares[V] = {};
  if (place.active) {
    float first[V];
    load_floats(x + place.channel, first);
    const int step = walk.lanes * walk.channels;
    walk.each_chunk<kUnroll, false>(place.lane, [&]<bool kFull>(std::int64_t row) {
      const T* from = x + row * walk.channels + place.channel;
      Vector<T, V> loaded[kUnroll];
#pragma unroll
      for (int u = 0; u < kUnroll; ++u)
        if (kFull || row + u * walk.lanes < walk.rows) loaded[u] = load<V>(from + u * step);
#pragma unroll
      for (int u = 0; u < kUnroll; ++u)
        if (kFull || row + u * walk.lanes < walk.rows) {
          float values[V];
          to_floats(loaded[u], values);
#pragma unroll
          for (int j = 0; j < V; ++j) {
            const float d = values[j] - first[j];
            sums[j] += d;
            squares[j] += d * d;
          }
        }
    });
  }

  __shared__ ChannelSums<V> total;
  if (!total.add_up(walk, sums, squares, scratch)) return;
  total.each_channel(walk, [&](int channel, double sum, double square) {
    float first[1];
    load_floats(x + channel, first);
    const float running_mean = into.running_mean ? into.running_mean[channel] : 0;
    const float running_variance = into.running_variance ? into.running_variance[channel] : 0;
    const double mean = first[0] + sum * counts.share;
    double m2 = square - sum * sum * counts.share;
    if (m2 < 0) m2 = 0;  // NaN stays NaN
    const auto moved = [&](double value, double target) {
      return static_cast<float>((1.0 - into.momentum) * value + into.momentum * target);
    };
    into.mean[channel] = static_cast<float>(mean);
    into.inverse_deviation[channel] =
        1 / sqrtf(static_cast<float>(m2 * counts.share + into.epsilon));
    if (into.running_mean) into.running_mean[channel] = moved(running_mean, mean);
    if (into.running_variance)
      into.running_variance[channel] = moved(running_variance, m2 * counts.unbiased_share);
  });
}

__global__ void inverse_deviation_kernel(const float* variance, float epsilon, float* result,
                                         std::int64_t channels) {
  const std::int64_t c = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (c < channels)
    result[c] = static_cast<float>(1 / sqrt(static_cast<double>(variance[c]) + epsilon));
}

}  // namespace

void batch_statistics(const Queue& on, Type type, const void* x, std::int64_t rows,
                      std::int64_t channels, const BatchStatistics& statistics) {
  if (rows == 0 || channels == 0) return;
  const auto n = static_cast<double>(rows);
  const Counts counts{.share = 1 / n, .unbiased_share = 1 / (n - 1)};
  with_groups(type, channels, [&]<class T, int V>() {
    const RowLaunch launch = plan_sums<V>(on, rows, channels, kUnroll, kBlocks);
    statistics_kernel<T, V><<<launch.grid, kSumThreads, 0, on.stream>>>(
        launch.walk, static_cast<const T*>(x), statistics, counts, SumScratch(on, channels));
    check_launch("batch_statistics");
  });
}

void inverse_deviation(const Queue& on, const float* variance, float epsilon, float* result,
                       std::int64_t channels) {
  if (channels == 0) return;
  inverse_deviation_kernel<<<static_cast<unsigned>(parts<std::int64_t>(channels, kThreads)),
                             kThreads, 0, on.stream>>>(variance, epsilon, result, channels);
  check_launch("inverse_deviation");
}

}  // namespace tandem::cuda

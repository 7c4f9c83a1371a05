#include "tensor/cuda/kernels/norm_rows.cuh"

namespace tandem::cuda {
namespace {

constexpr int kBlocks = 4;  // per multiprocessor, of kThreads
constexpr int kSlab = 256;  // channels of a block, at most

template <NormAfter kAfter>
constexpr int kUnroll = kAfter == NormAfter::add_relu ? 2 : 4;

// Not max(z, 0): NaN stays NaN.
__device__ __forceinline__ float relu_of(float z) { return z < 0 ? 0.0f : z; }

// Writes V bits of the mask, for the elements from `at` on. If V = 4, two neighbouring threads
// share a byte. `lanes` are the threads of the warp that call this.
template <int V>
__device__ __forceinline__ void put_bits(std::uint8_t* mask, std::int64_t at, unsigned bits,
                                         unsigned lanes, bool in_range) {
  static_assert(V == 4 || V == 8);
  if constexpr (V == 4) bits |= __shfl_down_sync(lanes, bits, 1) << 4;
  if (in_range && (at & 7) == 0) mask[at >> 3] = static_cast<std::uint8_t>(bits);
}

// Processes rows from the end. The statistics were computed from the start, so the last rows are
// still in the cache.
template <class T, int V, NormAfter kAfter>
__global__ void __launch_bounds__(kThreads, kBlocks)
    norm_kernel(RowWalk walk, ChannelNorm norm, const T* x, const T* residual, T* y,
                std::uint8_t* mask) {
  constexpr int kRows = kUnroll<kAfter>;
  const Place<V> place(walk);
  const unsigned lanes = __ballot_sync(0xffffffffU, place.active);
  if (!place.active) return;
  float scale[V], shift[V];
  load_scale_and_shift(norm, place.channel, scale, shift);
  const int step = walk.lanes * walk.channels;
  walk.each_chunk<kRows, true>(place.lane, [&]<bool kFull>(std::int64_t row) {
    const std::int64_t first = row * walk.channels + place.channel;
    Vector<T, V> loaded[kRows];
    [[maybe_unused]] Vector<T, V> added[kRows];
#pragma unroll
    for (int u = 0; u < kRows; ++u)
      if (kFull || row + u * walk.lanes < walk.rows) {
        loaded[u] = load_last<V>(x + first + u * step);
        if constexpr (kAfter == NormAfter::add_relu)
          added[u] = load_last<V>(residual + first + u * step);
      }
#pragma unroll
    for (int u = 0; u < kRows; ++u) {
      const bool in_range = kFull || row + u * walk.lanes < walk.rows;
      const std::int64_t at = first + u * step;
      [[maybe_unused]] unsigned bits = 0;
      if (in_range) {
        float z[V];
        [[maybe_unused]] float more[V];
        to_floats(loaded[u], z);
        if constexpr (kAfter == NormAfter::add_relu) to_floats(added[u], more);
#pragma unroll
        for (int j = 0; j < V; ++j) {
          z[j] = normalized(z[j], scale[j], shift[j]);
          if constexpr (kAfter == NormAfter::add_relu) {
            z[j] += more[j];
            bits |= (z[j] <= 0 ? 0U : 1U) << j;
          }
          if constexpr (kAfter != NormAfter::nothing) z[j] = relu_of(z[j]);
        }
        store_floats<V>(y + at, z);
      }
      if constexpr (kAfter == NormAfter::add_relu)
        if (mask) put_bits<V>(mask, at, bits, lanes, in_range);
    }
  });
}

// For any number of channels: each thread takes 8 elements, which are a byte of the mask.
template <class T, NormAfter kAfter>
__global__ void __launch_bounds__(kThreads)
    any_norm_kernel(ChannelNorm norm, const T* x, const T* residual, T* y, std::uint8_t* mask,
                    std::int64_t count, int channels) {
  const std::int64_t at = (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x) * 8;
  int channel = static_cast<int>(at % channels);
  [[maybe_unused]] unsigned bits = 0;
  for (int j = 0; j < 8 && at + j < count; ++j) {
    float scale[1], shift[1], z[1];
    [[maybe_unused]] float more[1];
    load_scale_and_shift(norm, channel, scale, shift);
    load_floats(x + at + j, z);
    z[0] = normalized(z[0], scale[0], shift[0]);
    if constexpr (kAfter == NormAfter::add_relu) {
      load_floats(residual + at + j, more);
      z[0] += more[0];
      bits |= (z[0] <= 0 ? 0U : 1U) << j;
    }
    if constexpr (kAfter != NormAfter::nothing) z[0] = relu_of(z[0]);
    store_floats<1>(y + at + j, z);
    if (++channel == channels) channel = 0;
  }
  if constexpr (kAfter == NormAfter::add_relu)
    if (mask && at < count) mask[at / 8] = static_cast<std::uint8_t>(bits);
}

template <class T, int V, NormAfter kAfter>
void launch_norm(const Queue& on, const ChannelNorm& norm, const T* x, const T* residual, T* y,
                 std::uint8_t* mask, std::int64_t rows, std::int64_t channels) {
  if constexpr (V == 1) {
    const std::int64_t count = rows * channels, blocks = parts<std::int64_t>(count, 8 * kThreads);
    any_norm_kernel<T, kAfter><<<static_cast<unsigned>(blocks), kThreads, 0, on.stream>>>(
        norm, x, residual, y, mask, count, static_cast<int>(channels));
  } else {
    const RowLaunch launch = plan_rows<V>(rows, channels, kThreads, kUnroll<kAfter>, kSlab,
                                          on.multiprocessors * kBlocks);
    norm_kernel<T, V, kAfter>
        <<<launch.grid, kThreads, 0, on.stream>>>(launch.walk, norm, x, residual, y, mask);
  }
  check_launch("channel_norm");
}

}  // namespace

void channel_norm(const Queue& on, Type type, const ChannelNorm& norm, const void* x,
                  const void* residual, void* y, std::uint8_t* mask, std::int64_t rows,
                  std::int64_t channels) {
  if (rows == 0 || channels == 0) return;
  with_groups(type, channels, [&]<class T, int V>() {
    with_after(norm.after, [&]<NormAfter kAfter>() {
      launch_norm<T, V, kAfter>(on, norm, static_cast<const T*>(x), static_cast<const T*>(residual),
                                static_cast<T*>(y), mask, rows, channels);
    });
  });
}

}  // namespace tandem::cuda

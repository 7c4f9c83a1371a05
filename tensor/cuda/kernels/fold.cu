#include "tensor/cuda/kernels/device.cuh"

namespace tandem::cuda {
namespace {

constexpr int kMostChannels = 512;

// A block folds one row of an image. The channels' sources are the same for all pixels.
template <class T, int N>
__global__ void __launch_bounds__(kThreads) fold_kernel(Fold f, const T* x, T* folded) {
  __shared__ int from_row[kMostChannels], from_offset[kMostChannels], from_column[kMostChannels];
  const int channels = static_cast<int>(f.channels), factor = static_cast<int>(f.factor);
  const int out_channels = static_cast<int>(f.out_channels);
  const std::int64_t image = blockIdx.x / f.out_height;
  const int top = static_cast<int>(blockIdx.x % f.out_height * f.factor - f.padding);
  for (int c = static_cast<int>(threadIdx.x); c < out_channels; c += kThreads) {
    const int neighbour = c / channels;
    const int row = top + neighbour / factor,
              column = neighbour % factor - static_cast<int>(f.padding);
    const bool exists = neighbour < factor * factor && row >= 0 && row < f.height;
    from_row[c] = exists ? row : -1;
    from_column[c] = column;
    from_offset[c] = column * channels + c % channels;
  }
  __syncthreads();

  const int groups = out_channels / N;
  const T* source = x + image * f.height * f.width * channels;
  T* target = folded + static_cast<std::int64_t>(blockIdx.x) * f.out_width * out_channels;
  for (int i = static_cast<int>(threadIdx.x); i < f.out_width * groups; i += kThreads) {
    const int left = i / groups * factor, first = i % groups * N;
    float values[N];
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const int row = from_row[first + k], column = left + from_column[first + k];
      values[k] = 0;
      if (row >= 0 && column >= 0 && column < f.width) {
        float value[1];
        to_floats(load<1>(source + (static_cast<std::int64_t>(row) * f.width + left) * channels +
                          from_offset[first + k]),
                  value);
        values[k] = value[0];
      }
    }
    store_floats(target + static_cast<std::int64_t>(i) * N, values);
  }
}

template <class T, bool kAccumulate>
__global__ void __launch_bounds__(kThreads) unfold_kernel(Fold f, const T* folded, float* x) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= f.images * f.height * f.width * f.channels) return;
  const std::int64_t channel = i % f.channels, pixel = i / f.channels;
  const std::int64_t column = pixel % f.width + f.padding,
                     row = pixel / f.width % f.height + f.padding;
  const std::int64_t image = pixel / f.width / f.height;
  const std::int64_t neighbour = row % f.factor * f.factor + column % f.factor;
  float value[1];
  to_floats(load<1>(folded +
                    ((image * f.out_height + row / f.factor) * f.out_width + column / f.factor) *
                        f.out_channels +
                    neighbour * f.channels + channel),
            value);
  x[i] = kAccumulate ? x[i] + value[0] : value[0];
}

}  // namespace

void fold(const Queue& on, Type type, const Fold& f, const void* x, void* folded) {
  if (f.images * f.out_height * f.out_width == 0) return;
  if (f.out_channels > kMostChannels) throw std::runtime_error("too many channels to fold");
  with_type(type, [&]<class T>() {
    fold_kernel<T, kWidest<T>>
        <<<static_cast<unsigned>(f.images * f.out_height), kThreads, 0, on.stream>>>(
            f, static_cast<const T*>(x), static_cast<T*>(folded));
  });
  check_launch("fold");
}

void unfold(const Queue& on, Type type, const Fold& f, const void* folded, float* x,
            bool accumulate) {
  const std::int64_t count = f.images * f.height * f.width * f.channels;
  if (count == 0) return;
  const auto blocks = static_cast<unsigned>(parts<std::int64_t>(count, kThreads));
  with_type(type, [&]<class T>() {
    const auto* from = static_cast<const T*>(folded);
    if (accumulate)
      unfold_kernel<T, true><<<blocks, kThreads, 0, on.stream>>>(f, from, x);
    else
      unfold_kernel<T, false><<<blocks, kThreads, 0, on.stream>>>(f, from, x);
  });
  check_launch("unfold");
}

}  // namespace tandem::cuda

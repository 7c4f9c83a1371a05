#include <cmath>

#include "tensor/cuda/kernels/pooling.cuh"

namespace tandem::cuda {
namespace {

// N winners: positions in a window, one byte each.
template <int N>
struct alignas(N) Winners {
  std::uint8_t at[N];
};
template <>
struct alignas(8) Winners<8> {
  unsigned quads[2];
};
template <>
struct alignas(4) Winners<4> {
  unsigned quads[1];
};

template <int N>
__device__ unsigned winner(const Winners<N>& winners, int k) {
  if constexpr (N == 1)
    return winners.at[0];
  else
    return winners.quads[k / 4] >> (k % 4 * 8) & 0xffU;
}

// The largest so far: the first of equals, but NaN replaces any number.
template <class T, int N>
struct Best {
  float value[N];
  int place[N];

  __device__ explicit Best(int first) {
#pragma unroll
    for (int k = 0; k < N; ++k) value[k] = -INFINITY, place[k] = first;
  }
  __device__ void see(const Vector<T, N>& loaded, int here) {
    float values[N];
    to_floats(loaded, values);
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const bool better = values[k] > value[k] || values[k] != values[k];
      value[k] = better ? values[k] : value[k];
      place[k] = better ? here : place[k];
    }
  }
  __device__ Vector<T, N> values() const { return from_floats<T, N>(value); }
  __device__ Winners<N> winners() const {
    Winners<N> bytes;
    if constexpr (N == 1)
      bytes.at[0] = static_cast<std::uint8_t>(place[0]);
    else
      bytes.quads[0] = place[0] | place[1] << 8 | place[2] << 16 | place[3] << 24;
    return bytes;
  }
};

// The same in pairs; single numbers would make it compute-bound.
template <>
struct Best<bf16, 8> {
  unsigned value[4], place[4];

  __device__ explicit Best(int first) {
#pragma unroll
    for (int k = 0; k < 4; ++k) value[k] = 0xff80ff80U, place[k] = first * 0x00010001U;
  }
  __device__ void see(const Vector<bf16, 8>& loaded, int here) {
    const unsigned places = here * 0x00010001U;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const auto number = *reinterpret_cast<const __nv_bfloat162*>(&loaded.pairs[k]);
      const auto best = *reinterpret_cast<const __nv_bfloat162*>(&value[k]);
      const unsigned better = __hgt2_mask(number, best) | __hneu2_mask(number, number);
      value[k] = (loaded.pairs[k] & better) | (value[k] & ~better);
      place[k] = (places & better) | (place[k] & ~better);
    }
  }
  __device__ Vector<bf16, 8> values() const { return {{value[0], value[1], value[2], value[3]}}; }
  __device__ Winners<8> winners() const {
    return {{__byte_perm(place[0], place[1], 0x6420), __byte_perm(place[2], place[3], 0x6420)}};
  }
};

// kWindow is the window's size, or 0 for any size.
template <class T, int N, int kWindow>
__global__ void __launch_bounds__(kThreads)
    max_pool_kernel(Pooling pool, Places places, unsigned threads, const T* x, T* y,
                    std::uint8_t* winners) {
  Places::Place at;
  if (!places.find(threads, at)) return;
  const int window = kWindow > 0 ? kWindow : pool.window;
  const int top = at.row * pool.stride - pool.padding;
  const int left = at.column * pool.stride - pool.padding;
  const T* in = x + pool.in(at.image, top, left) + at.vector * N;
  Best<T, N> best(max(0, -top) * window + max(0, -left));
  const auto inside = [&](int r, int s) {
    return top + r >= 0 && top + r < pool.height && left + s >= 0 && left + s < pool.width;
  };
  const auto offset = [&](int r, int s) {
    return (static_cast<std::int64_t>(r) * pool.width + s) * pool.channels;
  };
  if constexpr (kWindow > 0) {  // all loads before the first comparison
    Vector<T, N> loaded[kWindow * kWindow];
#pragma unroll
    for (int i = 0; i < kWindow * kWindow; ++i)
      if (inside(i / kWindow, i % kWindow))
        loaded[i] = load<N>(in + offset(i / kWindow, i % kWindow));
#pragma unroll
    for (int i = 0; i < kWindow * kWindow; ++i)
      if (inside(i / kWindow, i % kWindow)) best.see(loaded[i], i);
  } else {
    const int end_r = min(window, pool.height - top), end_s = min(window, pool.width - left);
    for (int r = max(0, -top); r < end_r; ++r)
#pragma unroll 4
      for (int s = max(0, -left); s < end_s; ++s)
        best.see(load<N>(in + offset(r, s)), r * window + s);
  }
  const std::int64_t out = pool.out(at.image, at.row, at.column) + at.vector * N;
  store<N>(y + out, best.values());
  *reinterpret_cast<Winners<N>*>(winners + out) = best.winners();
}

// A thread has the kStride x kStride pixels that begin at (row, column)·kStride, counted from the
// edge of the padding. The same few windows cover them all.
template <class T, int N, int kWindow, int kStride>
__global__ void __launch_bounds__(kThreads, 2)
    max_pool_gradient_kernel(Pooling pool, Places places, unsigned threads,
                             const std::uint8_t* winners, const T* dy, T* dx, bool accumulate) {
  constexpr int kSeeing = (kWindow + kStride - 1) / kStride;  // windows along a side
  Places::Place at;
  if (!places.find(threads, at)) return;
  Vector<T, N> gradient[kSeeing][kSeeing];
  Winners<N> won[kSeeing][kSeeing];
#pragma unroll
  for (int i = 0; i < kSeeing; ++i)
#pragma unroll
    for (int j = 0; j < kSeeing; ++j) {
      const int row = at.row - (kSeeing - 1) + i, column = at.column - (kSeeing - 1) + j;
      memset(&won[i][j], 0xff, N);  // not a position in a window
      gradient[i][j] = {};
      if (row < 0 || row >= pool.out_height || column < 0 || column >= pool.out_width) continue;
      const std::int64_t out = pool.out(at.image, row, column) + at.vector * N;
      gradient[i][j] = load<N>(dy + out);
      won[i][j] = *reinterpret_cast<const Winners<N>*>(winners + out);
    }
#pragma unroll
  for (int d = 0; d < kStride; ++d)
#pragma unroll
    for (int e = 0; e < kStride; ++e) {
      const int row = at.row * kStride + d - pool.padding;
      const int column = at.column * kStride + e - pool.padding;
      if (row < 0 || row >= pool.height || column < 0 || column >= pool.width) continue;
      float sum[N] = {};
#pragma unroll
      for (int i = 0; i < kSeeing; ++i)
#pragma unroll
        for (int j = 0; j < kSeeing; ++j) {
          const int r = d + (kSeeing - 1 - i) * kStride, s = e + (kSeeing - 1 - j) * kStride;
          if (r >= kWindow || s >= kWindow) continue;
          float values[N];
          to_floats(gradient[i][j], values);
#pragma unroll
          for (int k = 0; k < N; ++k)
            if (winner(won[i][j], k) == r * kWindow + s) sum[k] += values[k];
        }
      put(dx + pool.in(at.image, row, column) + at.vector * N, sum, accumulate);
    }
}

// Any window and stride. A thread has one pixel.
template <class T, int N>
__global__ void __launch_bounds__(kThreads)
    max_pool_gradient_any_kernel(Pooling pool, Places places, unsigned threads,
                                 const std::uint8_t* winners, const T* dy, T* dx, bool accumulate) {
  Places::Place at;
  if (!places.find(threads, at)) return;
  const int end_row = pool.end_seeing(at.row, pool.out_height);
  const int end_column = pool.end_seeing(at.column, pool.out_width);
  float sum[N] = {};
  for (int row = pool.first_seeing(at.row); row < end_row; ++row)
#pragma unroll 4
    for (int column = pool.first_seeing(at.column); column < end_column; ++column) {
      const std::int64_t out = pool.out(at.image, row, column) + at.vector * N;
      const auto won = *reinterpret_cast<const Winners<N>*>(winners + out);
      const unsigned place = (at.row + pool.padding - row * pool.stride) * pool.window + at.column +
                             pool.padding - column * pool.stride;
      float values[N];
      load_floats(dy + out, values);
#pragma unroll
      for (int k = 0; k < N; ++k)
        if (winner(won, k) == place) sum[k] += values[k];
    }
  put(dx + pool.in(at.image, at.row, at.column) + at.vector * N, sum, accumulate);
}

}  // namespace

void max_pool(const Queue& on, Type type, const PoolShape& shape, const void* x, void* y,
              std::uint8_t* winners) {
  const Pooling pool(shape);
  const std::int64_t in_image = shape.height * shape.width * shape.channels,
                     out_image = shape.out_height * shape.out_width * shape.channels;
  if (out_image == 0) return;
  with_vectors(type, shape.channels, [&]<class T, int N>() {
    const Places places(shape.out_height, shape.out_width, shape.channels / N);
    const auto kernel = shape.window == 3   ? max_pool_kernel<T, N, 3>
                        : shape.window == 2 ? max_pool_kernel<T, N, 2>
                                            : max_pool_kernel<T, N, 0>;
    for_images(shape.images, places, "max_pool",
               [&](std::int64_t image, unsigned threads, unsigned blocks) {
                 kernel<<<blocks, kThreads, 0, on.stream>>>(
                     pool, places, threads, static_cast<const T*>(x) + image * in_image,
                     static_cast<T*>(y) + image * out_image, winners + image * out_image);
               });
  });
}

void max_pool_gradient(const Queue& on, Type type, const PoolShape& shape,
                       const std::uint8_t* winners, const void* dy, void* dx, bool accumulate) {
  const Pooling pool(shape);
  const std::int64_t in_image = shape.height * shape.width * shape.channels,
                     out_image = shape.out_height * shape.out_width * shape.channels;
  if (in_image == 0) return;
  with_vectors(type, shape.channels, [&]<class T, int N>() {
    const bool by_two = shape.stride == 2 && (shape.window == 2 || shape.window == 3);
    const std::int64_t step = by_two ? 2 : 1, edge = by_two ? shape.padding : 0;
    const Places places(parts(shape.height + edge, step), parts(shape.width + edge, step),
                        shape.channels / N);
    const auto kernel = !by_two             ? max_pool_gradient_any_kernel<T, N>
                        : shape.window == 3 ? max_pool_gradient_kernel<T, N, 3, 2>
                                            : max_pool_gradient_kernel<T, N, 2, 2>;
    for_images(shape.images, places, "max_pool_gradient",
               [&](std::int64_t image, unsigned threads, unsigned blocks) {
                 kernel<<<blocks, kThreads, 0, on.stream>>>(
                     pool, places, threads, winners + image * out_image,
                     static_cast<const T*>(dy) + image * out_image,
                     static_cast<T*>(dx) + image * in_image, accumulate);
               });
  });
}

}  // namespace tandem::cuda

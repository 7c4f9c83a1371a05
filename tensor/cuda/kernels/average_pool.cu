#include "tensor/cuda/kernels/columns.cuh"
#include "tensor/cuda/kernels/pooling.cuh"

namespace tandem::cuda {
namespace {

template <class T, int N>
__global__ void __launch_bounds__(kThreads)
    average_pool_kernel(Pooling pool, Places places, unsigned threads, const T* x, T* y) {
  Places::Place at;
  if (!places.find(threads, at)) return;
  const int top = at.row * pool.stride - pool.padding;
  const int left = at.column * pool.stride - pool.padding;
  const int end_row = min(top + pool.window, pool.height);
  const int end_column = min(left + pool.window, pool.width);
  float sum[N] = {};
  for (int row = max(0, top); row < end_row; ++row)
#pragma unroll 4
    for (int column = max(0, left); column < end_column; ++column) {
      float values[N];
      load_floats(x + pool.in(at.image, row, column) + at.vector * N, values);
#pragma unroll
      for (int k = 0; k < N; ++k) sum[k] += values[k];
    }
  const int pixels = pool.pixels(at.row, pool.height) * pool.pixels(at.column, pool.width);
  const float share = __frcp_rn(static_cast<float>(pixels));
#pragma unroll
  for (int k = 0; k < N; ++k) sum[k] *= share;
  store_floats(y + pool.out(at.image, at.row, at.column) + at.vector * N, sum);
}

template <class T, int N>
__global__ void __launch_bounds__(kThreads)
    average_pool_gradient_kernel(Pooling pool, Places places, unsigned threads, const T* dy, T* dx,
                                 bool accumulate) {
  Places::Place at;
  if (!places.find(threads, at)) return;
  const int end_row = pool.end_seeing(at.row, pool.out_height);
  const int end_column = pool.end_seeing(at.column, pool.out_width);
  float sum[N] = {};
  for (int row = pool.first_seeing(at.row); row < end_row; ++row)
#pragma unroll 4
    for (int column = pool.first_seeing(at.column); column < end_column; ++column) {
      const int pixels = pool.pixels(row, pool.height) * pool.pixels(column, pool.width);
      const float share = __frcp_rn(static_cast<float>(pixels));
      float values[N];
      load_floats(dy + pool.out(at.image, row, column) + at.vector * N, values);
#pragma unroll
      for (int k = 0; k < N; ++k) sum[k] += values[k] * share;
    }
  put(dx + pool.in(at.image, at.row, at.column) + at.vector * N, sum, accumulate);
}

// The pixels of window `i` of `windows` over `size` pixels. With `windows` and `size` exchanged:
// the windows that cover pixel i.
struct Share {
  __device__ Share(int i, int windows, int size)
      : begin(i * size / windows), end(((i + 1) * size + windows - 1) / windows) {}
  __device__ int count() const { return end - begin; }
  int begin, end;
};

template <class T, int N>
__global__ void __launch_bounds__(kThreads)
    adaptive_average_pool_kernel(Pooling pool, Places places, unsigned threads, const T* x, T* y) {
  Places::Place at;
  if (!places.find(threads, at)) return;
  const Share rows(at.row, pool.out_height, pool.height);
  const Share columns(at.column, pool.out_width, pool.width);
  float sum[N] = {};
  for (int row = rows.begin; row < rows.end; ++row)
    for (int column = columns.begin; column < columns.end; ++column) {
      float values[N];
      load_floats(x + pool.in(at.image, row, column) + at.vector * N, values);
#pragma unroll
      for (int k = 0; k < N; ++k) sum[k] += values[k];
    }
  const float share = __frcp_rn(static_cast<float>(rows.count() * columns.count()));
#pragma unroll
  for (int k = 0; k < N; ++k) sum[k] *= share;
  store_floats(y + pool.out(at.image, at.row, at.column) + at.vector * N, sum);
}

template <class T, int N>
__global__ void __launch_bounds__(kThreads)
    adaptive_average_pool_gradient_kernel(Pooling pool, Places places, unsigned threads,
                                          const T* dy, T* dx, bool accumulate) {
  Places::Place at;
  if (!places.find(threads, at)) return;
  const Share rows(at.row, pool.height, pool.out_height);
  const Share columns(at.column, pool.width, pool.out_width);
  float sum[N] = {};
  for (int row = rows.begin; row < rows.end; ++row)
    for (int column = columns.begin; column < columns.end; ++column) {
      const int pixels = Share(row, pool.out_height, pool.height).count() *
                         Share(column, pool.out_width, pool.width).count();
      const float share = __frcp_rn(static_cast<float>(pixels));
      float values[N];
      load_floats(dy + pool.out(at.image, row, column) + at.vector * N, values);
#pragma unroll
      for (int k = 0; k < N; ++k) sum[k] += values[k] * share;
    }
  put(dx + pool.in(at.image, at.row, at.column) + at.vector * N, sum, accumulate);
}

// A block sums some columns of one image's [pixels, channels].
template <class T, int N>
__global__ void __launch_bounds__(kThreads)
    global_average_pool_kernel(const T* x, T* y, int pixels, std::int64_t channels, int lane_bits,
                               unsigned tiles, float share) {
  __shared__ float shared[kThreads * N];
  const int thread = static_cast<int>(threadIdx.x), lanes = 1 << lane_bits;
  const std::int64_t image = blockIdx.x / tiles, tile = blockIdx.x % tiles;
  const std::int64_t channel = (tile * lanes + thread % lanes) * N;
  float sum[N] = {};
  if (channel < channels) {
    const T* in = x + image * pixels * channels + channel;
#pragma unroll 8
    for (int pixel = thread >> lane_bits; pixel < pixels; pixel += kThreads >> lane_bits) {
      float values[N];
      load_floats(in + pixel * channels, values);
#pragma unroll
      for (int k = 0; k < N; ++k) sum[k] += values[k];
    }
  }
  const float mean[1] = {column_total<kThreads>(sum, lane_bits, shared) * share};
  const std::int64_t out = tile * lanes * N + thread;
  if (thread < lanes * N && out < channels) store_floats(y + image * channels + out, mean);
}

// Treats the image as one row of `pixels` columns.
template <class T, int N>
__global__ void __launch_bounds__(kThreads)
    global_average_pool_gradient_kernel(Divisor vectors, Divisor pixels, unsigned threads,
                                        std::int64_t channels, float share, const T* dy, T* dx,
                                        bool accumulate) {
  const unsigned thread = blockIdx.x * kThreads + threadIdx.x;
  if (thread >= threads) return;
  unsigned vector = thread;
  unsigned pixel = vectors.divide(vector);
  const unsigned image = pixels.divide(pixel);
  float values[N];
  load_floats(dy + image * channels + vector * N, values);
#pragma unroll
  for (int k = 0; k < N; ++k) values[k] *= share;
  put(dx + static_cast<std::int64_t>(thread) * N, values, accumulate);
}

}  // namespace

void average_pool(const Queue& on, Type type, const PoolShape& shape, const void* x, void* y) {
  const Pooling pool(shape);
  const std::int64_t in_image = shape.height * shape.width * shape.channels,
                     out_image = shape.out_height * shape.out_width * shape.channels;
  if (out_image == 0) return;
  with_vectors(type, shape.channels, [&]<class T, int N>() {
    const Places places(shape.out_height, shape.out_width, shape.channels / N);
    for_images(shape.images, places, "average_pool",
               [&](std::int64_t image, unsigned threads, unsigned blocks) {
                 average_pool_kernel<T, N><<<blocks, kThreads, 0, on.stream>>>(
                     pool, places, threads, static_cast<const T*>(x) + image * in_image,
                     static_cast<T*>(y) + image * out_image);
               });
  });
}

void average_pool_gradient(const Queue& on, Type type, const PoolShape& shape, const void* dy,
                           void* dx, bool accumulate) {
  const Pooling pool(shape);
  const std::int64_t in_image = shape.height * shape.width * shape.channels,
                     out_image = shape.out_height * shape.out_width * shape.channels;
  if (in_image == 0) return;
  with_vectors(type, shape.channels, [&]<class T, int N>() {
    const Places places(shape.height, shape.width, shape.channels / N);
    for_images(shape.images, places, "average_pool_gradient",
               [&](std::int64_t image, unsigned threads, unsigned blocks) {
                 average_pool_gradient_kernel<T, N><<<blocks, kThreads, 0, on.stream>>>(
                     pool, places, threads, static_cast<const T*>(dy) + image * out_image,
                     static_cast<T*>(dx) + image * in_image, accumulate);
               });
  });
}

void adaptive_average_pool(const Queue& on, Type type, const PoolShape& shape, const void* x,
                           void* y) {
  const Pooling pool(shape);
  const std::int64_t in_image = shape.height * shape.width * shape.channels,
                     out_image = shape.out_height * shape.out_width * shape.channels;
  if (out_image == 0) return;
  with_vectors(type, shape.channels, [&]<class T, int N>() {
    const Places places(shape.out_height, shape.out_width, shape.channels / N);
    for_images(shape.images, places, "adaptive_average_pool",
               [&](std::int64_t image, unsigned threads, unsigned blocks) {
                 adaptive_average_pool_kernel<T, N><<<blocks, kThreads, 0, on.stream>>>(
                     pool, places, threads, static_cast<const T*>(x) + image * in_image,
                     static_cast<T*>(y) + image * out_image);
               });
  });
}

void adaptive_average_pool_gradient(const Queue& on, Type type, const PoolShape& shape,
                                    const void* dy, void* dx, bool accumulate) {
  const Pooling pool(shape);
  const std::int64_t in_image = shape.height * shape.width * shape.channels,
                     out_image = shape.out_height * shape.out_width * shape.channels;
  if (in_image == 0) return;
  with_vectors(type, shape.channels, [&]<class T, int N>() {
    const Places places(shape.height, shape.width, shape.channels / N);
    for_images(shape.images, places, "adaptive_average_pool_gradient",
               [&](std::int64_t image, unsigned threads, unsigned blocks) {
                 adaptive_average_pool_gradient_kernel<T, N><<<blocks, kThreads, 0, on.stream>>>(
                     pool, places, threads, static_cast<const T*>(dy) + image * out_image,
                     static_cast<T*>(dx) + image * in_image, accumulate);
               });
  });
}

void global_average_pool(const Queue& on, Type type, const void* x, void* y, std::int64_t images,
                         std::int64_t pixels, std::int64_t channels) {
  if (images == 0 || channels == 0) return;
  with_vectors(type, channels, [&]<class T, int N>() {
    const int lane_bits = lane_bits_for<N>(channels / N, 32);
    const auto tiles =
        static_cast<unsigned>(parts<std::int64_t>(channels / N, std::int64_t{1} << lane_bits));
    global_average_pool_kernel<T, N>
        <<<static_cast<unsigned>(images) * tiles, kThreads, 0, on.stream>>>(
            static_cast<const T*>(x), static_cast<T*>(y), static_cast<int>(pixels), channels,
            lane_bits, tiles, 1 / static_cast<float>(pixels));
    check_launch("global_average_pool");
  });
}

void global_average_pool_gradient(const Queue& on, Type type, const void* dy, void* dx,
                                  std::int64_t images, std::int64_t pixels, std::int64_t channels,
                                  bool accumulate) {
  with_vectors(type, channels, [&]<class T, int N>() {
    const std::int64_t vectors = channels / N;
    for_each_piece(images, pixels * vectors, [&](std::int64_t first, std::int64_t count) {
      const auto threads = static_cast<unsigned>(count * pixels * vectors);
      global_average_pool_gradient_kernel<T, N>
          <<<parts<unsigned>(threads, kThreads), kThreads, 0, on.stream>>>(
              Divisor(vectors), Divisor(pixels), threads, channels, 1 / static_cast<float>(pixels),
              static_cast<const T*>(dy) + first * channels,
              static_cast<T*>(dx) + first * pixels * channels, accumulate);
      check_launch("global_average_pool_gradient");
    });
  });
}

}  // namespace tandem::cuda

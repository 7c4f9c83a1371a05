// With s = k + alpha/size · Σ x² over the channels c - before … c + after:
//
//   y = x·s^-beta      dx = dy·s^-beta - 2·beta·alpha/size · x · Σ dy·x·s^(-beta-1)
//
// where the last sum is over the channels that depend on x: c - after … c + before.
#include "tensor/cuda/kernels/device.cuh"

namespace tandem::cuda {
namespace {

struct Norm {
  explicit Norm(const ResponseNorm& norm)
      : before(norm.size / 2),
        after((norm.size - 1) / 2),
        alpha(static_cast<float>(static_cast<double>(norm.alpha) / norm.size)),
        beta(norm.beta),
        k(norm.k) {}

  int before, after;
  float alpha, beta, k;

  // s^-beta. Two square roots are faster than a power, and exact up to the last bit.
  __device__ float power(float s) const {
    if (beta != 0.75F) return powf(s, -beta);
    const float root = rsqrtf(s);
    float fourth_root;
    asm("sqrt.approx.f32 %0, %1;" : "=f"(fourth_root) : "f"(root));
    return root * fourth_root;
  }
};

// ---- Five channels, the usual window: a thread has N channels and kHalo on either side ----
constexpr int kSize = 5, kHalf = kSize / 2, kHalo = kSize - 1;

// Channels first - kHalo … first + N + kHalo - 1 of a row, zeros beyond its ends.
template <int N, class T>
__device__ void load_with_halo(const T* row, int first, int channels,
                               float (&values)[N + 2 * kHalo]) {
  static_assert(kHalo == 4);
  float middle[N], left[kHalo] = {}, right[kHalo] = {};
  load_floats(row + first, middle);
  if (first > 0) load_floats(row + first - kHalo, left);
  if (first + N < channels) load_floats(row + first + N, right);
#pragma unroll
  for (int k = 0; k < N; ++k) values[kHalo + k] = middle[k];
#pragma unroll
  for (int k = 0; k < kHalo; ++k) values[k] = left[k], values[kHalo + N + k] = right[k];
}

// The thread's row and first channel; false if it has none.
template <int N>
__device__ bool find(Divisor vectors, unsigned threads, unsigned& row, int& first) {
  unsigned vector = blockIdx.x * kThreads + threadIdx.x;
  if (vector >= threads) return false;
  row = vectors.divide(vector);
  first = static_cast<int>(vector) * N;
  return true;
}

// Σ values[at - kHalf … at + kHalf]
template <int kCount>
__device__ float sum_around(const float (&values)[kCount], int at) {
  float sum = values[at - kHalf];
#pragma unroll
  for (int d = 1 - kHalf; d <= kHalf; ++d) sum += values[at + d];
  return sum;
}

template <class T, int N>
__global__ void __launch_bounds__(kThreads)
    response_norm_5_kernel(Norm norm, Divisor vectors, unsigned threads, int channels, const T* x,
                           T* y) {
  unsigned row = 0;
  int first = 0;
  if (!find<N>(vectors, threads, row, first)) return;
  const std::int64_t begin = static_cast<std::int64_t>(row) * channels;
  float values[N + 2 * kHalo], squares[N + 2 * kHalo], result[N];
  load_with_halo<N>(x + begin, first, channels, values);
#pragma unroll
  for (int k = 0; k < N + 2 * kHalo; ++k) squares[k] = values[k] * values[k];
#pragma unroll
  for (int k = 0; k < N; ++k)
    result[k] =
        values[kHalo + k] * norm.power(norm.k + norm.alpha * sum_around(squares, kHalo + k));
  store_floats(y + begin + first, result);
}

template <class T, int N>
__global__ void __launch_bounds__(kThreads)
    response_norm_5_gradient_kernel(Norm norm, Divisor vectors, unsigned threads, int channels,
                                    const T* x, const T* dy, T* dx, bool accumulate) {
  unsigned row = 0;
  int first = 0;
  if (!find<N>(vectors, threads, row, first)) return;
  const std::int64_t begin = static_cast<std::int64_t>(row) * channels;
  constexpr int kCount = N + 2 * kHalo;
  float values[kCount], gradients[kCount], squares[kCount], products[kCount] = {}, result[N],
                                                            old[N] = {};
  load_with_halo<N>(x + begin, first, channels, values);
  load_with_halo<N>(dy + begin, first, channels, gradients);
  if (accumulate) load_floats(dx + begin + first, old);
#pragma unroll
  for (int k = 0; k < kCount; ++k) squares[k] = values[k] * values[k];
    // A channel beyond the row's ends has x = 0, but with k = 0 its power is infinite.
#pragma unroll
  for (int k = kHalo - kHalf; k < kHalo + N + kHalf; ++k) {
    const float s = norm.k + norm.alpha * sum_around(squares, k), power = norm.power(s);
    const int channel = first + k - kHalo;
    if (channel >= 0 && channel < channels)
      products[k] = gradients[k] * values[k] * __fdividef(power, s);
    if (k >= kHalo && k < kHalo + N) result[k - kHalo] = gradients[k] * power;
  }
  const float factor = 2 * norm.beta * norm.alpha;
#pragma unroll
  for (int k = 0; k < N; ++k)
    result[k] += old[k] - factor * values[kHalo + k] * sum_around(products, kHalo + k);
  store_floats(dx + begin + first, result);
}

// ---- Any size and number of channels: a thread has one channel ----
template <class T>
struct Row {
  const T* x;
  std::int64_t channels;

  __device__ float at(std::int64_t channel) const {
    float value[1] = {0};
    if (channel >= 0 && channel < channels) load_floats(x + channel, value);
    return value[0];
  }
  __device__ float s(const Norm& norm, std::int64_t channel) const {
    float sum = 0;
    for (int d = -norm.before; d <= norm.after; ++d) sum += at(channel + d) * at(channel + d);
    return norm.k + norm.alpha * sum;
  }
};

template <class T>
struct NormOne {
  Norm norm;
  std::int64_t channels;
  const T* x;
  T* y;

  template <int N>
  __device__ float load(std::int64_t i) const {
    const std::int64_t channel = i % channels;
    const Row<T> row{x + (i - channel), channels};
    return row.at(channel) * norm.power(row.s(norm, channel));
  }
  template <int N>
  __device__ void put(std::int64_t i, float value) const {
    const float values[1] = {value};
    store_floats(y + i, values);
  }
};

template <class T>
struct NormOneGradient {
  Norm norm;
  std::int64_t channels;
  const T *x, *dy;
  T* dx;
  bool accumulate;

  template <int N>
  __device__ float load(std::int64_t i) const {
    const std::int64_t channel = i % channels;
    const Row<T> row{x + (i - channel), channels}, gradient{dy + (i - channel), channels};
    float sum = 0;
    for (int d = -norm.after; d <= norm.before; ++d) {
      const std::int64_t seeing = channel + d;
      if (seeing < 0 || seeing >= channels) continue;
      const float s = row.s(norm, seeing);
      sum += gradient.at(seeing) * row.at(seeing) * norm.power(s) / s;
    }
    float old[1] = {0};
    if (accumulate) load_floats(dx + i, old);
    return old[0] + gradient.at(channel) * norm.power(row.s(norm, channel)) -
           2 * norm.beta * norm.alpha * row.at(channel) * sum;
  }
  template <int N>
  __device__ void put(std::int64_t i, float value) const {
    const float values[1] = {value};
    store_floats(dx + i, values);
  }
};

// Calls f(first element, vectors of a row, threads, blocks) for all rows.
template <class F>
void for_rows(std::int64_t rows, std::int64_t channels, int width, const char* name, F&& f) {
  const std::int64_t vectors = channels / width;
  for_each_piece(rows, vectors, [&](std::int64_t first, std::int64_t count) {
    const auto threads = static_cast<unsigned>(count * vectors);
    f(first * channels, Divisor(vectors), threads, parts<unsigned>(threads, kThreads));
    check_launch(name);
  });
}

}  // namespace

void response_norm(const Queue& on, Type type, const ResponseNorm& norm, const void* x, void* y,
                   std::int64_t rows, std::int64_t channels) {
  if (channels == 0) return;
  with_type(type, [&]<class T>() {
    const auto* in = static_cast<const T*>(x);
    auto* out = static_cast<T*>(y);
    constexpr int N = kWidest<T>;
    if (norm.size != kSize || channels % N != 0)
      return each<1>(on, "response_norm", rows * channels,
                     NormOne<T>{Norm(norm), channels, in, out});
    for_rows(rows, channels, N, "response_norm",
             [&](std::int64_t i, Divisor vectors, unsigned threads, unsigned blocks) {
               response_norm_5_kernel<T, N><<<blocks, kThreads, 0, on.stream>>>(
                   Norm(norm), vectors, threads, static_cast<int>(channels), in + i, out + i);
             });
  });
}

void response_norm_gradient(const Queue& on, Type type, const ResponseNorm& norm, const void* x,
                            const void* dy, void* dx, std::int64_t rows, std::int64_t channels,
                            bool accumulate) {
  if (channels == 0) return;
  with_type(type, [&]<class T>() {
    const auto *in = static_cast<const T*>(x), *gradient = static_cast<const T*>(dy);
    auto* out = static_cast<T*>(dx);
    constexpr int N = kWidest<T>;
    if (norm.size != kSize || channels % N != 0)
      return each<1>(on, "response_norm_gradient", rows * channels,
                     NormOneGradient<T>{Norm(norm), channels, in, gradient, out, accumulate});
    for_rows(rows, channels, N, "response_norm_gradient",
             [&](std::int64_t i, Divisor vectors, unsigned threads, unsigned blocks) {
               response_norm_5_gradient_kernel<T, N><<<blocks, kThreads, 0, on.stream>>>(
                   Norm(norm), vectors, threads, static_cast<int>(channels), in + i, gradient + i,
                   out + i, accumulate);
             });
  });
}

}  // namespace tandem::cuda

// What the kernels share: vectors of numbers, fast division, launches.
#pragma once

#include <cuda_bf16.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "tensor/cuda/kernels/kernels.h"

namespace tandem::cuda {

using bf16 = __nv_bfloat16;

// ---- N numbers that are loaded and stored together, aligned to their size ----
template <class T, int N>
struct Vector;
template <int N>
struct alignas(4 * N) Vector<float, N> {
  float at[N];
};
template <int N>
struct alignas(2 * N) Vector<bf16, N> {
  unsigned pairs[N / 2];
};
template <>
struct alignas(2) Vector<bf16, 1> {
  unsigned short bits;
};

// Numbers in 16 bytes, the widest access.
template <class T>
inline constexpr int kWidest = 16 / static_cast<int>(sizeof(T));
inline constexpr int kWidestF32 = 4;

template <int N, class T>
__device__ inline Vector<T, N> load(const T* from) {
  return *reinterpret_cast<const Vector<T, N>*>(from);
}

template <int N, class T>
__device__ inline void store(T* to, const Vector<T, N>& vector) {
  *reinterpret_cast<Vector<T, N>*>(to) = vector;
}

template <int N>
__device__ inline void to_floats(const Vector<float, N>& vector, float (&values)[N]) {
#pragma unroll
  for (int k = 0; k < N; ++k) values[k] = vector.at[k];
}

template <int N>
__device__ inline void to_floats(const Vector<bf16, N>& vector, float (&values)[N]) {
  if constexpr (N == 1) {
    values[0] = __uint_as_float(static_cast<unsigned>(vector.bits) << 16);
  } else {
#pragma unroll
    for (int k = 0; k < N / 2; ++k) {
      values[2 * k] = __uint_as_float(vector.pairs[k] << 16);
      values[2 * k + 1] = __uint_as_float(vector.pairs[k] & 0xffff0000U);
    }
  }
}

// Rounds to nearest, ties to even.
template <class T, int N>
__device__ inline Vector<T, N> from_floats(const float (&values)[N]) {
  Vector<T, N> vector;
  if constexpr (sizeof(T) == 4) {
#pragma unroll
    for (int k = 0; k < N; ++k) vector.at[k] = values[k];
  } else if constexpr (N == 1) {
    vector.bits = __bfloat16_as_ushort(__float2bfloat16_rn(values[0]));
  } else {
#pragma unroll
    for (int k = 0; k < N / 2; ++k) {
      const __nv_bfloat162 pair = __floats2bfloat162_rn(values[2 * k], values[2 * k + 1]);
      vector.pairs[k] = *reinterpret_cast<const unsigned*>(&pair);
    }
  }
  return vector;
}

// N numbers of type T as floats. N may exceed the width of one access.
template <int N, class T>
__device__ inline void load_floats(const T* from, float (&values)[N]) {
  constexpr int kStep = N < kWidest<T> ? N : kWidest<T>;
#pragma unroll
  for (int first = 0; first < N; first += kStep) {
    float part[kStep];
    to_floats(load<kStep>(from + first), part);
#pragma unroll
    for (int k = 0; k < kStep; ++k) values[first + k] = part[k];
  }
}

template <int N, class T>
__device__ inline void store_floats(T* to, const float (&values)[N]) {
  constexpr int kStep = N < kWidest<T> ? N : kWidest<T>;
#pragma unroll
  for (int first = 0; first < N; first += kStep) {
    float part[kStep];
#pragma unroll
    for (int k = 0; k < kStep; ++k) part[k] = values[first + k];
    store<kStep>(to + first, from_floats<T, kStep>(part));
  }
}

// ---- Integers ----
// As in base/random.h.
__host__ __device__ inline std::uint64_t mix64(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

template <class T>
__host__ __device__ constexpr T parts(T whole, T part) {
  return (whole + part - 1) / part;
}

// Division by a number that is known before the launch, as a multiplication. For numbers below 2³¹.
class Divisor {
 public:
  Divisor() = default;
  explicit Divisor(std::int64_t divisor) : divisor_(static_cast<unsigned>(divisor)) {
    while ((std::uint64_t{1} << shift_) < divisor_) ++shift_;
    const std::uint64_t rest = (std::uint64_t{1} << shift_) - divisor_;
    factor_ = static_cast<unsigned>((rest << 32) / divisor_ + 1);
  }
  // Replaces `number` by its remainder and returns the quotient.
  __device__ unsigned divide(unsigned& number) const {
    const unsigned quotient = (__umulhi(number, factor_) + number) >> shift_;
    number -= quotient * divisor_;
    return quotient;
  }

 private:
  unsigned divisor_ = 1, factor_ = 1;
  int shift_ = 0;
};

// ---- Launches ----
// Call this after every launch.
inline void check_launch(const char* kernel) {
  const cudaError_t status = cudaGetLastError();
  if (status != cudaSuccess)
    throw std::runtime_error("the GPU did not start " + std::string(kernel) + ": " +
                             cudaGetErrorString(status));
}

// Calls f.template operator()<float or bf16>().
template <class F>
void with_type(Type type, F&& f) {
  if (type == Type::bf16)
    f.template operator()<bf16>();
  else
    f.template operator()<float>();
}

// The number of blocks for `items` at `per_block` each, at most `per_multiprocessor` per
// multiprocessor.
inline int grid_size(const Queue& on, std::int64_t items, std::int64_t per_block,
                     int per_multiprocessor) {
  const std::int64_t most = static_cast<std::int64_t>(on.multiprocessors) * per_multiprocessor;
  return static_cast<int>(std::clamp<std::int64_t>(parts(items, per_block), 1, most));
}

// Calls f(first row, rows) for pieces whose items, `per_row` per row, number less than 2³¹.
template <class F>
void for_each_piece(std::int64_t rows, std::int64_t per_row, F&& f) {
  constexpr std::int64_t kMost = (std::int64_t{1} << 31) - 1024;
  if (rows == 0 || per_row == 0) return;
  if (per_row > kMost)
    throw std::runtime_error("a row or image is too large for the GPU's kernels");
  const std::int64_t most = kMost / per_row;
  for (std::int64_t first = 0; first < rows; first += most) f(first, std::min(most, rows - first));
}

inline int* counters(const Queue& on) { return static_cast<int*>(on.scratch); }
// The scratch memory after the counters.
template <class T>
T* partials(const Queue& on) {
  return reinterpret_cast<T*>(static_cast<int*>(on.scratch) + kCounters);
}

// Whether the calling block is the last of `blocks` to arrive. It then sees all that the others
// have written before, and resets the counter to zero. All threads of a block must call it.
__device__ inline bool is_last_block(int* counter, int blocks) {
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    last = atomicAdd(counter, 1) == blocks - 1;
    if (last) *counter = 0;
  }
  __syncthreads();
  if (last) __threadfence();
  return last;
}

// ---- One pass over elements ----
inline constexpr int kThreads = 256;
inline constexpr int kInFlight = 4;  // vectors that a thread loads before it stores the first

// `f.load<N>(i)` loads what is needed for the elements i … i + N - 1, and `f.put<N>(i, loaded)`
// writes them. Elements are independent, so outputs may be inputs.
template <int N, class F>
__global__ void __launch_bounds__(kThreads)
    each_kernel(F f, std::int64_t count, int vectors_per_thread) {
  const std::int64_t vectors = count / N;
  const std::int64_t first =
      static_cast<std::int64_t>(blockIdx.x) * kThreads * vectors_per_thread + threadIdx.x;
  decltype(f.template load<N>(0)) loaded[kInFlight];
#pragma unroll
  for (int u = 0; u < kInFlight; ++u) {
    const std::int64_t i = first + u * kThreads;
    if (u < vectors_per_thread && i < vectors) loaded[u] = f.template load<N>(i * N);
  }
#pragma unroll
  for (int u = 0; u < kInFlight; ++u) {
    const std::int64_t i = first + u * kThreads;
    if (u < vectors_per_thread && i < vectors) f.template put<N>(i * N, loaded[u]);
  }
  if constexpr (N > 1) {
    const std::int64_t i = vectors * N + threadIdx.x;
    if (blockIdx.x == 0 && i < count) f.template put<1>(i, f.template load<1>(i));
  }
}

template <int N, class F>
void each(const Queue& on, const char* name, std::int64_t count, const F& f) {
  if (count == 0) return;
  const std::int64_t vectors = count / N;
  // Few elements are spread over many threads. With many elements, each thread has several loads in
  // flight.
  const bool few = vectors <= static_cast<std::int64_t>(on.multiprocessors) * 2048;
  const int vectors_per_thread = few ? 1 : kInFlight;
  const std::int64_t blocks = std::max<std::int64_t>(
      1, parts<std::int64_t>(vectors, static_cast<std::int64_t>(kThreads) * vectors_per_thread));
  each_kernel<N>
      <<<static_cast<unsigned>(blocks), kThreads, 0, on.stream>>>(f, count, vectors_per_thread);
  check_launch(name);
}

}  // namespace tandem::cuda

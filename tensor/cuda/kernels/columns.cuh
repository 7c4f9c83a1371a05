// Sums over columns. A block's threads form rows of `lanes` threads (a power of two, at most 32),
// each with N columns of its own. These rows of threads take turns with the rows of the matrix.
#pragma once

#include "tensor/cuda/kernels/device.cuh"

namespace tandem::cuda {

// Calls f.template operator()<N>() with the widest access for which rows of `columns` are aligned.
template <class T, class F>
void with_width(std::int64_t columns, F&& f) {
  if (columns % kWidest<T> == 0)
    f.template operator()<kWidest<T>>();
  else if (kWidest<T> > 4 && columns % 4 == 0)
    f.template operator()<4>();
  else
    f.template operator()<1>();
}

// The number of lanes for so many vectors, as a power of two; together they have at least 4
// columns.
template <int N>
int lane_bits_for(std::int64_t vectors, int most_lanes) {
  int bits = N < 4 ? 2 : 0;
  while ((1 << bits) < most_lanes && (1 << bits) < vectors) ++bits;
  return bits;
}

// The total of the threads' sums per column: thread i < lanes·N gets that of column i, others 0.
// `shared` has space for kBlockThreads·N numbers.
template <int kBlockThreads, int N>
__device__ inline float column_total(float (&sum)[N], int lane_bits, float* shared) {
  const int thread = static_cast<int>(threadIdx.x), lanes = 1 << lane_bits, width = lanes * N;
  for (int offset = lanes; offset < 32; offset *= 2) {
#pragma unroll
    for (int k = 0; k < N; ++k) sum[k] += __shfl_xor_sync(0xffffffffU, sum[k], offset);
  }
  if (thread % 32 < lanes) {
    float* mine = shared + thread / 32 * width + thread % 32 * N;
#pragma unroll
    for (int k = 0; k < N; ++k) mine[k] = sum[k];
  }
  __syncthreads();
  float total = 0;
  if (thread < width) {
#pragma unroll
    for (int warp = 0; warp < kBlockThreads / 32; ++warp) total += shared[warp * width + thread];
  }
  return total;
}

}  // namespace tandem::cuda

#include "tensor/cuda/kernels/low_rank.h"

#include "tensor/cuda/kernels/device.cuh"

namespace tandem::cuda {
namespace {

constexpr int kColumnsAtOnce = 4;  // of P and Q

// The last matrix that does not begin behind this number: of a row of all matrices, or an element
// of all Q.
__device__ LowRankMatrix matrix_of(const LowRankMatrices& matrices, std::int64_t number,
                                   std::int64_t LowRankMatrix::*before) {
  int low = 0, high = matrices.count - 1;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (matrices.all[middle].*before <= number)
      low = middle;
    else
      high = middle - 1;
  }
  return matrices.all[low];
}

__device__ float warp_sum(float value) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2)
    value += __shfl_xor_sync(0xffffffffU, value, distance);
  return value;
}

__device__ std::int64_t own_warp() {
  return (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x) / 32;
}

// A warp per row.
__global__ void __launch_bounds__(kThreads)
    multiply_by_q_kernel(LowRankMatrices matrices, const float* residual, float* values,
                         const float* q, float* p) {
  const std::int64_t number = own_warp();
  if (number >= matrices.rows) return;
  const LowRankMatrix m = matrix_of(matrices, number, &LowRankMatrix::rows_before);
  const std::int64_t row = number - m.rows_before, at = m.first + row * m.columns;
  const unsigned lane = threadIdx.x % 32;
  for (int first = 0; first < matrices.rank; first += kColumnsAtOnce) {
    float sums[kColumnsAtOnce] = {};
    for (std::int64_t c = lane; c < m.columns; c += 32) {
      float value = values[at + c];
      if (first == 0 && residual != nullptr) {
        value += residual[at + c];
        values[at + c] = value;
      }
#pragma unroll
      for (int k = 0; k < kColumnsAtOnce; ++k)
        if (first + k < matrices.rank) sums[k] += value * q[m.q_at + (first + k) * m.columns + c];
    }
#pragma unroll
    for (int k = 0; k < kColumnsAtOnce; ++k) {
      const float sum = warp_sum(sums[k]);
      if (lane == 0 && first + k < matrices.rank) p[m.p_at + (first + k) * m.rows + row] = sum;
    }
  }
}

// A thread per column of a tile, so that neighbours read neighbouring values.
static_assert(kLowRankColumns == kThreads);
__global__ void __launch_bounds__(kThreads)
    multiply_by_p_kernel(LowRankMatrices matrices, const float* values, const float* p,
                         float* partial) {
  const LowRankTile tile = matrices.tiles[blockIdx.x];
  const LowRankMatrix m = matrices.all[tile.matrix];
  const std::int64_t c = tile.column + threadIdx.x;
  if (c >= m.columns) return;
  const std::int64_t begin = static_cast<std::int64_t>(tile.chunk) * kLowRankRows;
  const std::int64_t end = min(m.rows, begin + kLowRankRows);
  partial += m.partial_at + tile.chunk * matrices.rank * m.columns;
  for (int first = 0; first < matrices.rank; first += kColumnsAtOnce) {
    float sums[kColumnsAtOnce] = {};
#pragma unroll 8
    for (std::int64_t row = begin; row < end; ++row) {
      const float value = values[m.first + row * m.columns + c];
#pragma unroll
      for (int k = 0; k < kColumnsAtOnce; ++k)
        if (first + k < matrices.rank) sums[k] += value * p[m.p_at + (first + k) * m.rows + row];
    }
#pragma unroll
    for (int k = 0; k < kColumnsAtOnce; ++k)
      if (first + k < matrices.rank) partial[(first + k) * m.columns + c] = sums[k];
  }
}

__global__ void __launch_bounds__(kThreads)
    add_partial_kernel(LowRankMatrices matrices, const float* partial, float* q) {
  const std::int64_t element = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (element >= matrices.all_q) return;
  const LowRankMatrix m = matrix_of(matrices, element, &LowRankMatrix::q_at);
  const std::int64_t chunks = parts<std::int64_t>(m.rows, kLowRankRows);
  partial += m.partial_at + element - m.q_at;
  float sum = 0;
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk)
    sum += partial[chunk * matrices.rank * m.columns];
  q[element] = sum;
}

// A warp per row.
__global__ void __launch_bounds__(kThreads)
    multiply_p_q_kernel(LowRankMatrices matrices, const float* p, const float* q,
                        const float* values, float* to) {
  const std::int64_t number = own_warp();
  if (number >= matrices.rows) return;
  const LowRankMatrix m = matrix_of(matrices, number, &LowRankMatrix::rows_before);
  const std::int64_t row = number - m.rows_before, at = m.first + row * m.columns;
  for (std::int64_t c = threadIdx.x % 32; c < m.columns; c += 32) {
    float sum = 0;
    for (int k = 0; k < matrices.rank; ++k)
      sum += p[m.p_at + k * m.rows + row] * q[m.q_at + k * m.columns + c];
    to[at + c] = values == nullptr ? sum : values[at + c] - sum;
  }
}

__global__ void take_plain_kernel(const PlainStretch* stretches, const float* values,
                                  float* residual, float* to) {
  const PlainStretch own = stretches[blockIdx.x];
  for (std::int64_t i = threadIdx.x; i < own.count; i += blockDim.x) {
    float value = values[own.first + i];
    if (residual != nullptr) {
      value += residual[own.first + i];
      residual[own.first + i] = 0;
    }
    to[own.at + i] = value;
  }
}

__global__ void put_plain_kernel(const PlainStretch* stretches, const float* from, float* values) {
  const PlainStretch own = stretches[blockIdx.x];
  for (std::int64_t i = threadIdx.x; i < own.count; i += blockDim.x)
    values[own.first + i] = from[own.at + i];
}

unsigned blocks_of_rows(const LowRankMatrices& matrices) {
  return static_cast<unsigned>(parts<std::int64_t>(matrices.rows, kThreads / 32));
}

}  // namespace

void multiply_by_q(const Queue& on, const LowRankMatrices& matrices, const float* residual,
                   float* values, const float* q, float* p) {
  if (matrices.rows == 0) return;
  multiply_by_q_kernel<<<blocks_of_rows(matrices), kThreads, 0, on.stream>>>(matrices, residual,
                                                                             values, q, p);
  check_launch("multiply_by_q");
}

void multiply_by_p(const Queue& on, const LowRankMatrices& matrices, const float* values,
                   const float* p, float* partial, float* q) {
  if (matrices.tile_count == 0) return;
  multiply_by_p_kernel<<<static_cast<unsigned>(matrices.tile_count), kThreads, 0, on.stream>>>(
      matrices, values, p, partial);
  check_launch("multiply_by_p");
  add_partial_kernel<<<static_cast<unsigned>(parts<std::int64_t>(matrices.all_q, kThreads)),
                       kThreads, 0, on.stream>>>(matrices, partial, q);
  check_launch("add_partial");
}

void multiply_p_q(const Queue& on, const LowRankMatrices& matrices, const float* p, const float* q,
                  const float* values, float* to) {
  if (matrices.rows == 0) return;
  multiply_p_q_kernel<<<blocks_of_rows(matrices), kThreads, 0, on.stream>>>(matrices, p, q, values,
                                                                            to);
  check_launch("multiply_p_q");
}

void take_plain(const Queue& on, const PlainStretch* stretches, int count, const float* values,
                float* residual, float* to) {
  if (count == 0) return;
  take_plain_kernel<<<static_cast<unsigned>(count), kThreads, 0, on.stream>>>(stretches, values,
                                                                              residual, to);
  check_launch("take_plain");
}

void put_plain(const Queue& on, const PlainStretch* stretches, int count, const float* from,
               float* values) {
  if (count == 0) return;
  put_plain_kernel<<<static_cast<unsigned>(count), kThreads, 0, on.stream>>>(stretches, from,
                                                                             values);
  check_launch("put_plain");
}

}  // namespace tandem::cuda

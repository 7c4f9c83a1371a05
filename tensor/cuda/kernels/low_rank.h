// Products of many matrices with thin ones, for PowerSGD: see tensor/low_rank_staging.h and
// dist/codecs/thin_matrix.h. The conventions of kernels.h hold. One kernel handles all matrices.
#pragma once

#include "tensor/cuda/kernels/kernels.h"

namespace tandem::cuda {

struct LowRankMatrix {
  std::int64_t first, rows, columns;
  std::int64_t p_at, q_at;
  std::int64_t rows_before;  // in the matrices before it
  std::int64_t partial_at;   // where the parts of its Q begin, one per kLowRankRows rows
};
// A CUDA block's part of Mᵀ·P: some columns of some rows.
struct LowRankTile {
  int matrix;
  int chunk;  // of rows
  std::int64_t column;
};
inline constexpr int kLowRankRows = 512, kLowRankColumns = 256;

struct LowRankMatrices {
  const LowRankMatrix* all;  // on the device
  int count;
  std::int64_t rows;   // of all matrices
  std::int64_t all_q;  // elements of all Q
  int rank;
  const LowRankTile* tiles;
  int tile_count;
};

// values ← values + residual, if it is not null; P = values·Q
void multiply_by_q(const Queue& on, const LowRankMatrices& matrices, const float* residual,
                   float* values, const float* q, float* p);
// Q = valuesᵀ·P; `partial` is memory for the parts of Q.
void multiply_by_p(const Queue& on, const LowRankMatrices& matrices, const float* values,
                   const float* p, float* partial, float* q);
// to = P·Qᵀ; with `values`: values - P·Qᵀ
void multiply_p_q(const Queue& on, const LowRankMatrices& matrices, const float* p, const float* q,
                  const float* values, float* to);

// Stretches that are in no matrix, and where they are among all of these.
struct PlainStretch {
  std::int64_t first, count, at;
};
// to[at …] = values + residual; residual ← 0, if it is not null. `to` may be pinned host memory.
void take_plain(const Queue& on, const PlainStretch* stretches, int count, const float* values,
                float* residual, float* to);
void put_plain(const Queue& on, const PlainStretch* stretches, int count, const float* from,
               float* values);

}  // namespace tandem::cuda

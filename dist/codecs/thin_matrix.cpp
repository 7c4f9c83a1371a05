#include "dist/codecs/thin_matrix.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace tandem {
namespace {

constexpr std::int64_t kLanes = 16;  // independent sums

// Calls f<n>(first column) for groups of n = 4, 2 and 1 columns.
template <class F>
void for_columns(int rank, F&& f) {
  std::int64_t k = 0;
  for (; k + 4 <= rank; k += 4) f.template operator()<4>(k);
  for (; k + 2 <= rank; k += 2) f.template operator()<2>(k);
  for (; k < rank; ++k) f.template operator()<1>(k);
}

// The products of `a` with K columns of b.
template <int K>
std::array<float, K> dots(const float* a, const float* b, std::int64_t n) {
  float sums[K][kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int k = 0; k < K; ++k)
      for (std::int64_t lane = 0; lane < kLanes; ++lane)
        sums[k][lane] += a[i + lane] * b[k * n + i + lane];
  std::array<float, K> result{};
  for (; i < n; ++i)
    for (int k = 0; k < K; ++k) result[k] += a[i] * b[k * n + i];
  for (int k = 0; k < K; ++k)
    for (const float sum : sums[k]) result[k] += sum;
  return result;
}

// q += mᵀ·p, for R rows of m and K columns of p and q. Columns of p are `rows` long.
template <int R, int K>
void add_rows(const float* m, std::int64_t columns, const float* p, std::int64_t rows, float* q) {
  float factors[R][K];
  for (int r = 0; r < R; ++r)
    for (int k = 0; k < K; ++k) factors[r][k] = p[k * rows + r];
  std::int64_t i = 0;
  for (; i + kLanes <= columns; i += kLanes)
    for (int k = 0; k < K; ++k) {
      float sums[kLanes];
      std::copy_n(q + k * columns + i, kLanes, sums);
      for (int r = 0; r < R; ++r)
        for (std::int64_t lane = 0; lane < kLanes; ++lane)
          sums[lane] += factors[r][k] * m[r * columns + i + lane];
      std::copy_n(sums, kLanes, q + k * columns + i);
    }
  for (; i < columns; ++i)
    for (int k = 0; k < K; ++k)
      for (int r = 0; r < R; ++r) q[k * columns + i] += factors[r][k] * m[r * columns + i];
}

// row += sign · (a row of P)·Qᵀ
void add_product(float sign, MatrixSize size, int rank, const float* p, const float* q,
                 float* __restrict row) {
  for_columns(rank, [&]<int K>(std::int64_t first) {
    std::array<float, K> factors;
    for (int k = 0; k < K; ++k) factors[k] = sign * p[(first + k) * size.rows];
    const float* const from = q + first * size.columns;
    for (std::int64_t i = 0; i < size.columns; ++i) {
      float sum = row[i];
      for (int k = 0; k < K; ++k) sum += factors[k] * from[k * size.columns + i];
      row[i] = sum;
    }
  });
}

void add_multiple(float factor, const float* from, std::int64_t n, float* to) {
  for (std::int64_t i = 0; i < n; ++i) to[i] += factor * from[i];
}

float dot(const float* a, const float* b, std::int64_t n) { return dots<1>(a, b, n)[0]; }

}  // namespace

void add_and_multiply(MatrixSize size, int rank, const float* residual, float* m, const float* q,
                      float* p) {
  for (std::int64_t row = 0; row < size.rows; ++row) {
    float* const at = m + row * size.columns;
    if (residual) add_multiple(1, residual + row * size.columns, size.columns, at);
    for_columns(rank, [&]<int K>(std::int64_t first) {
      const auto results = dots<K>(at, q + first * size.columns, size.columns);
      for (int k = 0; k < K; ++k) p[(first + k) * size.rows + row] = results[k];
    });
  }
}

void multiply_transposed(MatrixSize size, int rank, const float* m, const float* p, float* q) {
  std::fill_n(q, rank * size.columns, 0.0F);
  constexpr int kRows = 4;
  std::int64_t row = 0;
  const auto add = [&]<int R>() {
    for_columns(rank, [&]<int K>(std::int64_t first) {
      add_rows<R, K>(m + row * size.columns, size.columns, p + first * size.rows + row, size.rows,
                     q + first * size.columns);
    });
  };
  for (; row + kRows <= size.rows; row += kRows) add.template operator()<kRows>();
  for (; row < size.rows; ++row) add.template operator()<1>();
}

void multiply_thin(MatrixSize size, int rank, const float* p, const float* q, float* product) {
  for (std::int64_t row = 0; row < size.rows; ++row) {
    float* const to = product + row * size.columns;
    std::fill_n(to, size.columns, 0.0F);
    add_product(1, size, rank, p + row, q, to);
  }
}

void subtract_product(MatrixSize size, int rank, const float* m, const float* p, const float* q,
                      float* rest) {
  for (std::int64_t row = 0; row < size.rows; ++row) {
    float* const to = rest + row * size.columns;
    std::copy_n(m + row * size.columns, size.columns, to);
    add_product(-1, size, rank, p + row, q, to);
  }
}

void orthogonalise(std::int64_t rows, int rank, float* p) {
  for (int k = 0; k < rank; ++k) {
    float* const column = p + k * rows;
    const float before = std::sqrt(dot(column, column, rows));
    for (int pass = 0; pass < 2; ++pass)  // once more, because the first leaves rounding errors
      for (int j = 0; j < k; ++j) {
        const float* const other = p + j * rows;
        add_multiple(-dot(other, column, rows), other, rows, column);
      }
    const float norm = std::sqrt(dot(column, column, rows));
    const float factor = norm > 1e-6F * before && norm > 0 ? 1 / norm : 0;
    for (std::int64_t i = 0; i < rows; ++i) column[i] *= factor;
  }
}

}  // namespace tandem

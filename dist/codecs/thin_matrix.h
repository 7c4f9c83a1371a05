// Products of a matrix M of n rows and m columns with thin matrices, for PowerSGD: P of n rows, and
// Q of m rows, both of `rank` columns. M is stored row by row, P and Q column by column. All loops
// take up to four columns of P and Q at once, so that M is read once for them.
#pragma once

#include <cstdint>

namespace tandem {

struct MatrixSize {
  std::int64_t rows, columns;
};

// M ← M + residual, if there is one; P = M·Q.
void add_and_multiply(MatrixSize size, int rank, const float* residual, float* m, const float* q,
                      float* p);

// Q = Mᵀ·P
void multiply_transposed(MatrixSize size, int rank, const float* m, const float* p, float* q);

// product = P·Qᵀ
void multiply_thin(MatrixSize size, int rank, const float* p, const float* q, float* product);

// rest = M - P·Qᵀ
void subtract_product(MatrixSize size, int rank, const float* m, const float* p, const float* q,
                      float* rest);

// Gram-Schmidt, for the columns of P. One that depends on those before it becomes zero.
void orthogonalise(std::int64_t rows, int rank, float* p);

}  // namespace tandem

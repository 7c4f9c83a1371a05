// A staging whose device multiplies weight matrices by thin ones, for PowerSGD
// (dist/codecs/powersgd.cpp has the formula), so that only thin matrices and plain values are
// moved.
//
// Only one thread at a time may make calls, in this order: begin(); finite(); multiply();
// multiply_transposed(); finish(), which makes the values P·Qᵀ.
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include "tensor/staging.h"

namespace tandem {

class LowRankStaging : public Staging {
 public:
  // P has `rank` columns as long as the matrix has rows, and Q as it has columns.
  struct Matrix {
    std::int64_t first = 0;  // element, in the range
    std::int64_t rows = 0, columns = 0;
    std::int64_t p_at = 0, q_at = 0;  // where they begin among all P and all Q
  };
  struct Layout {
    std::int64_t count = 0;  // elements of the range
    int rank = 1;
    std::vector<Matrix> matrices;
    std::vector<Segment> plain;  // stretches of the range that are in no matrix
    std::int64_t all_p = 0, all_q = 0, all_plain = 0;  // elements
  };

  // M ← M + residual, if there is one; P = M·Q. Returns all P, and behind them the plain values, to
  // which their residuals are added and become 0. The caller may change them until finish().
  virtual std::span<float> multiply(const Tensor& residual, std::span<const float> q) = 0;
  // Q = Mᵀ·P, and residual ← M - P·Qᵀ. Returns all Q. The caller may change them until finish().
  virtual std::span<float> multiply_transposed(const Tensor& residual) = 0;

  void wait(std::size_t) final {}
  Pieces packed(std::size_t) final { throw std::logic_error("values stay on the device"); }
  void put(std::size_t, const ConstPieces&) final {
    throw std::logic_error("values stay on the device");
  }
};

}  // namespace tandem

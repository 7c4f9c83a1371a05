// PowerSGD (Vogels et al., 2019). A weight matrix's gradient M = gradient + residual, of n rows and
// m columns, is sent as two thin matrices. Q is what the last iteration has left (warm start):
//
//   P ← Σ M·Q over all workers;  P ← orthogonalised;  Q ← Σ Mᵀ·P over all workers;  sum = P·Qᵀ
//   residual ← M - P·(own Mᵀ·P)ᵀ
//
// Both sums are all-reduces of plain values, so any number of workers sends 2·(n+m)·RANK values per
// matrix. Biases, matrices that would not become smaller, and rows that a message has only in part
// are sent plain, with P.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "dist/codecs/codec.h"
#include "dist/codecs/thin_matrix.h"

namespace tandem {

// Rows of a weight matrix that one message has as a whole.
struct Rows {
  std::size_t parameter;  // which
  std::int64_t first;     // element, in the range
  std::int64_t rows, columns;

  MatrixSize size() const { return {.rows = rows, .columns = columns}; }
};

class PowerSgd : public Codec {
 public:
  PowerSgd(int rank, const CodecContext& context);

  std::unique_ptr<AllReduce> make_sum(const AllReduce::Group& group,
                                      const BlockRange& range) override;
  bool on_device() const override;
  std::int64_t plain_elements() const override;
  void visit(State& state) override;

  int rank() const { return rank_; }
  // The parts of matrices in the range that are encoded. The rest is plain.
  std::vector<Rows> rows_in(const BlockRange& range) const;
  // The columns of Q, each as long as the matrix has columns. Parts of a matrix have their own.
  std::span<float> q_of(const Rows& rows, const BlockRange& range);
  // Undefined if nothing is remembered.
  Tensor residual(const BlockRange& range) const {
    return residual_.defined() ? residual_.view(range.first(), {range.count}) : Tensor();
  }

 private:
  static std::int64_t columns_of(const Parameter& p) { return p.shape.count() / p.shape[0]; }
  bool gains(std::int64_t rows, std::int64_t columns) const {
    return (rows + columns) * rank_ < rows * columns;
  }

  int rank_;
  std::map<std::int64_t, Tensor> q_;  // by the first element, in the flat gradient
  Tensor residual_;                   // where the codec encodes
};

}  // namespace tandem

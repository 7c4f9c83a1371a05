// One matrix product as cuBLASLt sees it: its descriptors, and the algorithms that can compute it.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "tensor/cuda/queue/context.h"

namespace tandem::cuda {

// Extra work in the same pass. The bias has n elements and is added to every row of c. Its gradient
// has m elements and is the sum of op(a) over k.
enum class Epilogue { none, bias, bias_relu, bias_gradient };

// Everything that the choice of an algorithm depends on, for row-major c[m, n] = op(a)[m, k] ·
// op(b)[k, n].
struct Problem {
  int device;
  bool deterministic;
  std::int64_t m, n, k;
  bool transpose_a, transpose_b;
  Type factors, result;
  bool tf32;
  bool accumulate;
  Epilogue epilogue;
  std::array<std::uint32_t, 4> alignment;  // bytes, of a, b, c and the bias

  friend auto operator<=>(const Problem&, const Problem&) = default;
  std::string text() const;
};

struct Operands {
  const void* a;
  const void* b;
  void* c;
  const void* bias;  // or the output for its gradient; null without an epilogue
};

// The largest power of two that divides the address, up to the widest access of a kernel.
std::uint32_t alignment_of(const void* pointer);

struct Algorithm {
  cublasLtMatmulAlgo_t algorithm;
  double microseconds = 0;  // 0: not measured

  std::string text() const;
};

class ProductPlan {
 public:
  explicit ProductPlan(const Problem& problem);
  ProductPlan(const ProductPlan&) = delete;  // cuBLASLt does not say that descriptors may be copied
  ProductPlan& operator=(const ProductPlan&) = delete;

  const Problem& problem() const { return problem_; }

  // Algorithms that cuBLASLt proposes, the most promising first; empty if it cannot compute the
  // product.
  std::vector<Algorithm> candidates(const Context& context, const Operands& operands);

  cublasStatus_t try_run(const Context& context, const Operands& operands,
                         const Algorithm& algorithm);
  // Like try_run(), but throws SystemError on failure.
  void run(const Context& context, const Operands& operands, const Algorithm& algorithm);

 private:
  void set_bias(const void* bias);

  Problem problem_;
  cublasLtMatmulDescOpaque_t product_{};
  cublasLtMatrixLayoutOpaque_t a_{}, b_{}, c_{};
};

}  // namespace tandem::cuda

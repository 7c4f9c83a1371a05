// One matrix product as cuBLASLt sees it: its descriptors, and the algorithms that can compute it.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "tensor/cuda/queue/context.h"

namespace tandem::cuda {

// What is done in the same pass. The bias has n elements and is added to every row of c; its
// gradient has m elements and is the sum of op(a) over k.
enum class Epilogue { none, bias, bias_relu, bias_gradient };

// All that the choice of an algorithm depends on, for row-major c[m, n] = op(a)[m, k] · op(b)[k,
// n].
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
  const void* bias;  // or where its gradient goes; null without an epilogue
};

// What a pointer may be relied on to be a multiple of, up to what any kernel can use.
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

  // What cuBLASLt proposes, the most promising first; nothing if it cannot compute this at all.
  std::vector<Algorithm> candidates(const Context& context, const Operands& operands);

  cublasStatus_t try_run(const Context& context, const Operands& operands,
                         const Algorithm& algorithm);
  // Throws SystemError where try_run fails.
  void run(const Context& context, const Operands& operands, const Algorithm& algorithm);

 private:
  void set_bias(const void* bias);

  Problem problem_;
  cublasLtMatmulDescOpaque_t product_{};
  cublasLtMatrixLayoutOpaque_t a_{}, b_{}, c_{};
};

}  // namespace tandem::cuda

#include "tensor/cuda/blas/blas_plan.h"

#include <fmt/format.h>

#include <algorithm>

namespace tandem::cuda {
namespace {

constexpr cudaDataType data_type(Type type) {
  return type == Type::bf16 ? CUDA_R_16BF : CUDA_R_32F;
}
constexpr const char* name(Type type) { return type == Type::bf16 ? "bf16" : "f32"; }

template <class T>
void set(cublasLtMatmulDescOpaque_t& product, cublasLtMatmulDescAttributes_t attribute,
         const T& value) {
  check(cublasLtMatmulDescSetAttribute(&product, attribute, &value, sizeof value),
        "describing a product");
}

template <class T>
void set(cublasLtMatmulPreferenceOpaque_t& preference,
         cublasLtMatmulPreferenceAttributes_t attribute, const T& value) {
  check(cublasLtMatmulPreferenceSetAttribute(&preference, attribute, &value, sizeof value),
        "choosing an algorithm");
}

// A row-major matrix is the transpose of a column-major one.
void describe_rows(cublasLtMatrixLayoutOpaque_t& layout, Type type, std::int64_t rows,
                   std::int64_t columns) {
  check(cublasLtMatrixLayoutInit(&layout, data_type(type), static_cast<std::uint64_t>(columns),
                                 static_cast<std::uint64_t>(rows), columns),
        "describing a matrix");
}

std::uint32_t epilogue_of(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::bias:
      return CUBLASLT_EPILOGUE_BIAS;
    case Epilogue::bias_relu:
      return CUBLASLT_EPILOGUE_RELU_BIAS;
    case Epilogue::bias_gradient:
      return CUBLASLT_EPILOGUE_BGRADB;  // our a is cuBLASLt's B
    case Epilogue::none:
      break;
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
}

const char* name(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::bias:
      return ", bias";
    case Epilogue::bias_relu:
      return ", bias, ReLU";
    case Epilogue::bias_gradient:
      return ", gradient of the bias";
    case Epilogue::none:
      break;
  }
  return "";
}

// How partial sums may be combined. If the result is not f32, they are combined in f32. Adding to
// the result in place has no fixed order, so it is not deterministic.
std::uint32_t reductions(const Problem& problem) {
  if (problem.result != Type::f32) return CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  if (problem.deterministic)
    return CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
  return CUBLASLT_REDUCTION_SCHEME_MASK;
}

template <class T>
T setting(const cublasLtMatmulAlgo_t& algorithm, cublasLtMatmulAlgoConfigAttributes_t attribute) {
  T value{};
  std::size_t written = 0;
  check(cublasLtMatmulAlgoConfigGetAttribute(&algorithm, attribute, &value, sizeof value, &written),
        "describing an algorithm");
  return value;
}

}  // namespace

std::string Problem::text() const {
  const auto matrix = [](bool transposed, std::int64_t rows, std::int64_t columns) {
    return transposed ? fmt::format("[{}, {}]ᵀ", columns, rows)
                      : fmt::format("[{}, {}]", rows, columns);
  };
  return fmt::format("{}{}[{}, {}] {} {}{} · {}{}", deterministic ? "deterministic " : "",
                     name(result), m, n, accumulate ? "+=" : "=",
                     factors == Type::f32 && tf32 ? "tf32" : name(factors),
                     matrix(transpose_a, m, k), matrix(transpose_b, k, n), name(epilogue));
}

std::uint32_t alignment_of(const void* pointer) {
  constexpr std::uintptr_t kWidestAccess = 16;
  const auto address = reinterpret_cast<std::uintptr_t>(pointer) | kWidestAccess;
  return static_cast<std::uint32_t>(address & (~address + 1));  // its lowest bit
}

std::string Algorithm::text() const {
  return fmt::format("algorithm {}, tile {}, stages {}, split {}, reduction {}{}",
                     setting<std::int32_t>(algorithm, CUBLASLT_ALGO_CONFIG_ID),
                     setting<std::uint32_t>(algorithm, CUBLASLT_ALGO_CONFIG_TILE_ID),
                     setting<std::uint32_t>(algorithm, CUBLASLT_ALGO_CONFIG_STAGES_ID),
                     setting<std::int32_t>(algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM),
                     setting<std::uint32_t>(algorithm, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME),
                     microseconds > 0 ? fmt::format(", {:.2f} µs", microseconds) : "");
}

// cuBLASLt is column-major and computes cᵀ = op(b)ᵀ · op(a)ᵀ: its A is our b, its B is our a, and
// the transposition flags are the same.
ProductPlan::ProductPlan(const Problem& problem) : problem_(problem) {
  const Problem& p = problem_;
  const bool tf32 = p.factors == Type::f32 && p.tf32;
  check(cublasLtMatmulDescInit(&product_, tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
                               CUDA_R_32F),
        "describing a product");
  set(product_, CUBLASLT_MATMUL_DESC_TRANSA, p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(product_, CUBLASLT_MATMUL_DESC_TRANSB, p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(product_, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(p.epilogue));
  if (p.epilogue != Epilogue::none)
    set(product_, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, std::int32_t{CUDA_R_32F});
  describe_rows(a_, p.factors, p.transpose_a ? p.k : p.m, p.transpose_a ? p.m : p.k);
  describe_rows(b_, p.factors, p.transpose_b ? p.n : p.k, p.transpose_b ? p.k : p.n);
  describe_rows(c_, p.result, p.m, p.n);
}

void ProductPlan::set_bias(const void* bias) {
  if (problem_.epilogue != Epilogue::none) set(product_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
}

std::vector<Algorithm> ProductPlan::candidates(const Context& context, const Operands& operands) {
  constexpr int kMost = 16;
  // The proposals depend on the alignment of the bias. They must hold for every bias of the
  // problem, so this pointer has exactly the problem's alignment. It is not read.
  constexpr std::uintptr_t kWellAligned = 256;
  set_bias(reinterpret_cast<const void*>(
      (reinterpret_cast<std::uintptr_t>(operands.bias) & ~(kWellAligned - 1)) +
      problem_.alignment[3]));

  cublasLtMatmulPreferenceOpaque_t preference{};
  check(cublasLtMatmulPreferenceInit(&preference), "choosing an algorithm");
  set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
      std::uint64_t{Context::kWorkspaceBytes});
  set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reductions(problem_));
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, problem_.alignment[1]);
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, problem_.alignment[0]);
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, problem_.alignment[2]);
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, problem_.alignment[2]);

  std::array<cublasLtMatmulHeuristicResult_t, kMost> proposals{};
  int found = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      context.blas, &product_, &b_, &a_, &c_, &c_, &preference, kMost, proposals.data(), &found);
  // cuBLASLt returns either for an unsupported combination of types and epilogue.
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE) return {};
  check(status, "choosing an algorithm");

  std::vector<Algorithm> result;
  for (int i = 0; i < found; ++i) {
    const cublasLtMatmulHeuristicResult_t& proposal = proposals[static_cast<std::size_t>(i)];
    if (proposal.state == CUBLAS_STATUS_SUCCESS) result.push_back({proposal.algo});
  }
  return result;
}

cublasStatus_t ProductPlan::try_run(const Context& context, const Operands& operands,
                                    const Algorithm& algorithm) {
  constexpr float kOne = 1, kZero = 0;
  set_bias(operands.bias);
  return cublasLtMatmul(context.blas, &product_, &kOne, operands.b, &b_, operands.a, &a_,
                        problem_.accumulate ? &kOne : &kZero, operands.c, &c_, operands.c, &c_,
                        &algorithm.algorithm, context.workspace, Context::kWorkspaceBytes,
                        context.stream);
}

void ProductPlan::run(const Context& context, const Operands& operands,
                      const Algorithm& algorithm) {
  const cublasStatus_t status = try_run(context, operands, algorithm);
  if (status != CUBLAS_STATUS_SUCCESS)
    throw SystemError("cuBLAS failed in {}: {}", problem_.text(), cublasGetStatusString(status));
}

}  // namespace tandem::cuda

#include "tensor/cuda/blas/products.h"

#include <fmt/format.h>

#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "tensor/choices.h"
#include "tensor/cuda/blas/blas_plan.h"
#include "tensor/cuda/queue/gpu_time.h"

namespace tandem::cuda {
namespace {

// Nothing: cuBLASLt cannot compute it, or a plain product and our kernels are faster.
using Choice = std::optional<Algorithm>;

Choices<Problem, Choice>& choices() {
  static Choices<Problem, Choice> all;
  return all;
}

Choice fastest(const Context& context, ProductPlan& plan, const Operands& operands,
               FunctionRef<double()> otherwise) {
  Choice best;
  for (Algorithm& candidate : plan.candidates(context, operands)) {
    // A proposed algorithm may still fail to run.
    if (plan.try_run(context, operands, candidate) != CUBLAS_STATUS_SUCCESS) continue;
    candidate.microseconds =
        microseconds(context.stream, [&] { plan.run(context, operands, candidate); });
    if (!best || candidate.microseconds < best->microseconds) best = candidate;
  }
  if (best && otherwise() < best->microseconds) best.reset();
  return best;
}

// Does not measure, so that every process chooses the same algorithm.
Choice first(const Context& context, ProductPlan& plan, const Operands& operands) {
  const std::vector<Algorithm> candidates = plan.candidates(context, operands);
  return candidates.empty() ? Choice() : Choice(candidates.front());
}

Problem problem_of(const Context& context, const Matmul& product, Epilogue epilogue,
                   const Tensor& bias) {
  require(product.a.dtype() == product.b.dtype(), "a product of {} and {}",
          name_of(product.a.dtype()), name_of(product.b.dtype()));
  return {.device = context.device,
          .deterministic = context.deterministic,
          .m = product.c.size(0),
          .n = product.c.size(1),
          .k = product.a.size(product.transpose_a ? 0 : 1),
          .transpose_a = product.transpose_a,
          .transpose_b = product.transpose_b,
          .factors = type_of(product.a),
          .result = type_of(product.c),
          .tf32 = context.precision == Precision::tf32,
          .accumulate = product.accumulate,
          .epilogue = epilogue,
          .alignment = {alignment_of(product.a.raw()), alignment_of(product.b.raw()),
                        alignment_of(product.c.raw()),
                        epilogue == Epilogue::none ? 0 : alignment_of(bias.raw())}};
}

Operands operands_of(const Matmul& product, Epilogue epilogue, const Tensor& bias) {
  return {product.a.raw(), product.b.raw(), product.c.raw(),
          epilogue == Epilogue::none ? nullptr : bias.data<float>()};
}

}  // namespace

// The problems that this worker has met. No other thread uses these descriptors.
struct Products::Plans {
  struct Known {
    explicit Known(const Problem& problem) : plan(problem) {}
    ProductPlan plan;
    Choice choice;
  };
  std::map<Problem, std::unique_ptr<Known>> known;

  // `rest` replaces the epilogue after a plain product.
  Known& find(const Context& context, const Matmul& product, Epilogue epilogue, const Tensor& bias,
              FunctionRef<void()> rest) {
    const Problem problem = problem_of(context, product, epilogue, bias);
    if (const auto at = known.find(problem); at != known.end()) return *at->second;

    auto met = std::make_unique<Known>(problem);
    if (const Choice* made = choices().find(problem)) {
      met->choice = *made;
    } else {
      met->choice = choose(context, met->plan, product, bias, rest);
    }
    if (!met->choice && epilogue == Epilogue::none)
      throw SystemError("cuBLAS has no algorithm for {}", problem.text());
    return *known.emplace(problem, std::move(met)).first->second;
  }

  // Measuring writes to c and to the gradient of the bias.
  Choice choose(const Context& context, ProductPlan& plan, const Matmul& product,
                const Tensor& bias, FunctionRef<void()> rest) {
    const Problem& problem = plan.problem();
    Operands operands = operands_of(product, problem.epilogue, bias);
    if (context.deterministic)
      return choices().find_or_choose(problem, [&] { return first(context, plan, operands); });

    context.refuse_while_recording(problem.text());
    Tensor scratch;
    if (product.accumulate) {  // measuring would add the product repeatedly
      scratch = Tensor::empty(product.c.shape(), product.c.dtype(), product.c.device());
      operands.c = scratch.raw();
    }
    const bool alone = problem.epilogue == Epilogue::none;
    const double plain =
        alone ? std::numeric_limits<double>::infinity()
              : find(context, product, Epilogue::none, {}, rest).choice->microseconds;
    const auto otherwise = [&] {
      return alone ? plain : plain + microseconds(context.stream, rest);
    };
    // Earlier work on the stream may wait for another worker, which may wait for this choice.
    check(cudaStreamSynchronize(context.stream), "waiting before measuring");
    return choices().find_or_choose(problem,
                                    [&] { return fastest(context, plan, operands, otherwise); });
  }

  // Returns false, without computing anything, if the plain product and `rest` are better.
  bool run(const Context& context, const Matmul& product, Epilogue epilogue, const Tensor& bias,
           FunctionRef<void()> rest) {
    Known& way = find(context, product, epilogue, bias, rest);
    if (!way.choice) return false;
    way.plan.run(context, operands_of(product, epilogue, bias), *way.choice);
    return true;
  }
};

Products::Products(Context& context) : context_(context), plans_(std::make_unique<Plans>()) {}

Products::~Products() = default;

void Products::multiply(const Matmul& product) {
  const Tensor& c = product.c;
  if (c.count() == 0) return;
  if (product.a.count() == 0) {  // an empty sum
    if (!product.accumulate) fill(context_.queue, type_of(c), c.raw(), c.count(), 0);
    return;
  }
  plans_->run(context_, product, Epilogue::none, {}, [] {});
}

void Products::linear(const Tensor& x, const Tensor& weight, const Tensor& bias, bool relu,
                      const Tensor& y) {
  if (y.count() == 0) return;
  const Matmul product{.a = x, .b = weight, .transpose_b = true, .c = y};
  const auto rest = [&] {
    add_bias(context_.queue, type_of(y), bias.data<float>(), y.raw(), y.size(0), y.size(1));
    if (relu) cuda::relu(context_.queue, type_of(y), y.raw(), y.raw(), y.count());
  };
  const Epilogue epilogue = relu ? Epilogue::bias_relu : Epilogue::bias;
  if (x.count() > 0 && plans_->run(context_, product, epilogue, bias, rest)) return;
  multiply(product);
  rest();
}

void Products::linear_weight_gradient(const Tensor& x, const Tensor& dy, const GradientInto& weight,
                                      const GradientInto& bias) {
  const Matmul product{
      .a = dy, .transpose_a = true, .b = x, .c = weight.tensor, .accumulate = weight.accumulate};
  const auto rest = [&] {
    float* sums = bias.tensor.data<float>();
    if (dy.count() > 0)
      sum_rows(context_.queue, type_of(dy), dy.raw(), sums, dy.size(0), dy.size(1),
               bias.accumulate);
    else if (!bias.accumulate)
      fill(context_.queue, Type::f32, sums, bias.tensor.count(), 0);
  };
  // cuBLASLt does not document the order in which it sums the gradient of the bias. The order of
  // sum_rows is fixed.
  const bool together = weight.tensor.defined() && bias.tensor.defined() && !bias.accumulate &&
                        !context_.deterministic && x.count() > 0 && dy.count() > 0;
  if (together && plans_->run(context_, product, Epilogue::bias_gradient, bias.tensor, rest))
    return;
  if (weight.tensor.defined()) multiply(product);
  if (bias.tensor.defined()) rest();
}

void Products::linear_data_gradient(const Tensor& dy, const Tensor& weight, const Tensor& x,
                                    bool rectified, const GradientInto& dx) {
  if (!dx.tensor.defined()) return;
  // The mask must not apply to what dx already holds.
  const bool apart = rectified && dx.accumulate;
  const Tensor product =
      apart ? Tensor::empty(dx.tensor.shape(), dx.tensor.dtype(), dx.tensor.device()) : dx.tensor;
  multiply({.a = dy, .b = weight, .c = product, .accumulate = dx.accumulate && !apart});
  if (!rectified) return;
  require(x.dtype() == dx.tensor.dtype(), "a gradient of {} for x of {}",
          name_of(dx.tensor.dtype()), name_of(x.dtype()));
  relu_gradient(context_.queue, type_of(x), x.raw(), product.raw(), dx.tensor.raw(), x.count(),
                dx.accumulate);
}

std::string Products::describe() const {
  std::string lines;
  for (const auto& [problem, way] : plans_->known)
    lines += fmt::format("{}: {}\n", problem.text(),
                         way->choice ? way->choice->text() : "plain product, then kernels");
  return lines;
}

}  // namespace tandem::cuda

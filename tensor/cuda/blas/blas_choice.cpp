#include "tensor/cuda/blas/blas_choice.h"

#include <map>
#include <mutex>

#include "tensor/cuda/queue/gpu_time.h"

namespace tandem::cuda {
namespace {

struct Choices {
  std::mutex mutex;  // also held while measuring, so that one worker measures at a time
  std::map<Problem, Choice> made;
};

Choices& choices() {
  static Choices all;
  return all;
}

const Choice* find(const Choices& all, const Problem& problem) {
  const auto at = all.made.find(problem);
  return at == all.made.end() ? nullptr : &at->second;
}

Choice fastest(const Context& context, Plan& plan, const Operands& operands,
               FunctionRef<double()> otherwise) {
  Choice best;
  for (Algorithm& candidate : plan.candidates(context, operands)) {
    // A proposal may turn out not to fit after all.
    if (plan.try_run(context, operands, candidate) != CUBLAS_STATUS_SUCCESS) continue;
    candidate.microseconds =
        microseconds(context.stream, [&] { plan.run(context, operands, candidate); });
    if (!best || candidate.microseconds < best->microseconds) best = candidate;
  }
  if (best && otherwise() < best->microseconds) best.reset();
  return best;
}

Choice first(const Context& context, Plan& plan, const Operands& operands) {
  const std::vector<Algorithm> candidates = plan.candidates(context, operands);
  return candidates.empty() ? Choice() : Choice(candidates.front());
}

}  // namespace

const Choice* find_choice(const Problem& problem) {
  Choices& all = choices();
  const std::scoped_lock lock(all.mutex);
  return find(all, problem);
}

const Choice& make_choice(const Context& context, Plan& plan, const Operands& operands,
                          FunctionRef<double()> otherwise) {
  const Problem& problem = plan.problem();
  // Earlier work on the stream may wait for another worker, and that one for the mutex.
  if (!problem.deterministic)
    check(cudaStreamSynchronize(context.stream), "waiting before measuring");
  Choices& all = choices();
  const std::scoped_lock lock(all.mutex);
  if (const Choice* made = find(all, problem)) return *made;
  const Choice choice = problem.deterministic ? first(context, plan, operands)
                                              : fastest(context, plan, operands, otherwise);
  return all.made.emplace(problem, choice).first->second;
}

}  // namespace tandem::cuda

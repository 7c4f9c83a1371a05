#include "tensor/cuda/convolution/engine_search.h"

#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tensor/cuda/queue/gpu_time.h"

namespace tandem::cuda::dnn {

namespace {

// Fast engines come early. Compiling an engine at run time takes half a second; others are ready at
// once.
constexpr struct {
  cudnnBackendHeurMode_t heuristic;
  int engines;
} kHeuristics[] = {{CUDNN_HEUR_MODE_A, 20}, {CUDNN_HEUR_MODE_B, 8}, {CUDNN_HEUR_MODE_FALLBACK, 8}};
constexpr int kMostCompiled = 1;

// Tensor cores round f32 inputs to tf32, so fp32 excludes them. No precision allows other roundings
// of inputs or sums.
bool suits(const Context& context, const Engine& engine) {
  if (engine.has(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS)) return false;
  if (engine.has(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION)) return false;
  if (context.precision == Precision::fp32 && engine.has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE))
    return false;
  return !(context.deterministic && engine.has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC));
}

bool fits(const EnginePlan& plan) {
  return plan.workspace_bytes() <= static_cast<std::int64_t>(Context::kWorkspaceBytes);
}

// Runs the plan once. Returns whether it succeeds.
bool works(Context& context, EnginePlan& plan, const Operands& operands) {
  if (!fits(plan)) return false;
  if (plan.run(context.dnn, operands, context.workspace) != CUDNN_STATUS_SUCCESS) {
    cudaGetLastError();  // clears the error, so that the next call does not report it
    return false;
  }
  check(cudaStreamSynchronize(context.stream), "trying a convolution");
  return true;
}

}  // namespace

std::optional<FoundEngine> search_engine(Context& context, const ConvolutionGraph& convolution,
                                         const Operands& operands) {
  const Graph graph(context.dnn, convolution);
  std::optional<FoundEngine> best;
  std::set<std::string> seen;
  int compiled = 0;
  for (const auto& [heuristic, most] : kHeuristics) {
    if (heuristic == CUDNN_HEUR_MODE_FALLBACK && best) break;
    std::vector<Engine> engines = graph.engines(heuristic);
    int tried = 0;
    for (std::size_t i = 0; i < engines.size() && tried < most; ++i) {
      Engine& engine = engines[i];
      if (!suits(context, engine) || !seen.insert(engine.name).second) continue;
      if (engine.compiled_at_runtime && ++compiled > kMostCompiled) continue;
      ++tried;
      std::optional<EnginePlan> plan = EnginePlan::build(context.dnn, std::move(engine));
      if (!plan || !works(context, *plan, operands)) continue;
      const EnginePlace place{heuristic, i};
      if (context.deterministic) return FoundEngine{std::move(*plan), place};
      const float time = milliseconds(
          context.stream,
          [&] {
            check(plan->run(context.dnn, operands, context.workspace), "measuring a convolution");
          },
          best ? best->milliseconds : std::numeric_limits<float>::infinity());
      if (!best || time < best->milliseconds) best = FoundEngine{std::move(*plan), place, time};
    }
  }
  return best;
}

std::optional<EnginePlan> plan_at(Context& context, const ConvolutionGraph& convolution,
                                  const EnginePlace& place, const std::string& engine) {
  std::vector<Engine> engines = Graph(context.dnn, convolution).engines(place.heuristic);
  if (place.index >= engines.size()) return std::nullopt;
  Engine& found = engines[place.index];
  if (found.name != engine || !suits(context, found)) return std::nullopt;
  std::optional<EnginePlan> plan = EnginePlan::build(context.dnn, std::move(found));
  if (!plan || !fits(*plan)) return std::nullopt;
  return plan;
}

}  // namespace tandem::cuda::dnn

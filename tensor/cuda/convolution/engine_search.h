// Finds cuDNN's fastest engine for a convolution.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "tensor/cuda/convolution/dnn_graph.h"
#include "tensor/cuda/queue/context.h"

namespace tandem::cuda::dnn {

// An engine's place among a heuristic's proposals for a graph. It is the same in every worker.
struct EnginePlace {
  cudnnBackendHeurMode_t heuristic = CUDNN_HEUR_MODE_A;
  std::size_t index = 0;
};

struct FoundEngine {
  EnginePlan plan;
  EnginePlace place;
  float milliseconds = 0;  // 0: not measured
};

// Returns nothing if no engine computes the graph with the context's precision. Runs engines on the
// operands and overwrites the output. A deterministic context takes the first engine that works, so
// that every process takes the same one.
std::optional<FoundEngine> search_engine(Context& context, const ConvolutionGraph& convolution,
                                         const Operands& operands);

// The plan of an engine that was found before. Nothing if another engine is now at its place, or if
// it no longer works.
std::optional<EnginePlan> plan_at(Context& context, const ConvolutionGraph& convolution,
                                  const EnginePlace& place, const std::string& engine);

}  // namespace tandem::cuda::dnn

// Finds the fastest of the engines that cuDNN has for a convolution.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "tensor/cuda/convolution/dnn_graph.h"
#include "tensor/cuda/queue/context.h"

namespace tandem::cuda::dnn {

// The place of an engine in what a heuristic advises for a graph: the same in every worker.
struct EnginePlace {
  cudnnBackendHeurMode_t heuristic = CUDNN_HEUR_MODE_A;
  std::size_t index = 0;
};

struct FoundEngine {
  EnginePlan plan;
  EnginePlace place;
  float milliseconds = 0;  // 0 where nothing was measured
};

// Nothing where no engine can compute the graph as precisely as the context asks for. Engines are
// tried on the operands, whose output is overwritten. A deterministic context takes the first
// engine that works, so that every process takes the same.
std::optional<FoundEngine> search_engine(Context& context, const ConvolutionGraph& convolution,
                                         const Operands& operands);

// The plan of an engine that was found before. Nothing where another one is at its place now, or
// where it does not do any more.
std::optional<EnginePlan> plan_at(Context& context, const ConvolutionGraph& convolution,
                                  const EnginePlace& place, const std::string& engine);

}  // namespace tandem::cuda::dnn

// A call of a convolution, and the forms in which it can be computed.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tensor/cuda/convolution/dnn_graph.h"
#include "tensor/cuda/queue/context.h"

namespace tandem::cuda {

using dnn::Direction;

// A call of one of the three functions. The output is x, filter or y, as the direction says.
struct ConvolutionCall {
  Direction direction;
  Convolution convolution;
  Tensor x, filter, y;
  Tensor bias = {};
  bool relu = false;
  bool accumulate = false;

  Tensor& output() {
    if (direction == Direction::forward) return y;
    return direction == Direction::data_gradient ? x : filter;
  }
  // An input; the activations are all of its type.
  const Tensor& input() const { return direction == Direction::forward ? x : y; }
  Type type() const { return type_of(input()); }
  std::int64_t channels() const { return x.size(3); }
};

// How a call is put to cuDNN, or to cuBLAS.
struct ConvolutionForm {
  std::int64_t channels = 0;         // of x and the filter, where they have fewer with zeros behind
  bool folded = false;               // the stride's pixels are channels: see kernels.h
  bool unrolled = false;             // folded, then a product with the matrix of all windows
  bool fused = false;                // cuDNN adds the bias and applies ReLU itself
  Type filter_gradient = Type::f32;  // what is written first; it becomes f32 afterwards
};

// Those for cuDNN in which only the channels differ; what is likely to be fast comes first.
std::vector<ConvolutionForm> plain_forms(const ConvolutionCall& call);

// The form for cuBLAS, where there is one.
std::optional<ConvolutionForm> unrolled_form(const ConvolutionCall& call);

// How a folded form folds them.
Fold fold_of_x(const ConvolutionCall& call, const ConvolutionForm& form);
Fold fold_of_filter(const ConvolutionCall& call, const ConvolutionForm& form);

dnn::ConvolutionGraph graph_of(const ConvolutionCall& call, const ConvolutionForm& form);

std::string text_of(const ConvolutionCall& call);

// All that a choice depends on, on one GPU.
using CallKey = std::array<std::int64_t, 17>;

CallKey key_of(const Context& context, const ConvolutionCall& call);

}  // namespace tandem::cuda

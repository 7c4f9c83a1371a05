// A call of a convolution, and the ways to put it to cuDNN.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tensor/cuda/context.h"
#include "tensor/cuda/dnn_graph.h"

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

// How a call is put to cuDNN.
struct ConvolutionForm {
  std::int64_t channels = 0;         // of x and the filter, where they have fewer with zeros behind
  bool folded = false;               // the stride's pixels are channels: see kernels.h
  bool fused = false;                // cuDNN adds the bias and applies ReLU itself
  Type filter_gradient = Type::f32;  // what cuDNN writes; it becomes f32 afterwards
};

// Those in which only the channels differ; what is likely to be fast comes first.
std::vector<ConvolutionForm> plain_forms(const ConvolutionCall& call);

// How a folded form folds them.
Fold fold_of_x(const ConvolutionCall& call, const ConvolutionForm& form);
Fold fold_of_filter(const ConvolutionCall& call, const ConvolutionForm& form);

dnn::ConvolutionGraph graph_of(const ConvolutionCall& call, const ConvolutionForm& form);

std::string text_of(const ConvolutionCall& call);

// All that a choice depends on.
using CallKey = std::array<std::int64_t, 18>;

struct CallKeyHash {
  std::size_t operator()(const CallKey& key) const {
    std::uint64_t hash = 14695981039346656037U;
    for (const std::int64_t value : key) {
      hash = (hash ^ static_cast<std::uint64_t>(value)) * 1099511628211U;
      hash ^= hash >> 32;
    }
    return static_cast<std::size_t>(hash);
  }
};

CallKey key_of(const Context& context, const ConvolutionCall& call);

}  // namespace tandem::cuda

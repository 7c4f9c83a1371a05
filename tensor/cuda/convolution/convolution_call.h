// A convolution call, and the forms in which it can be computed.
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

// A call of one of the three functions of Convolutions. The direction determines whether x, filter
// or y is the output.
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
  // One of the inputs. All activations have its type.
  const Tensor& input() const { return direction == Direction::forward ? x : y; }
  Type type() const { return type_of(input()); }
  std::int64_t channels() const { return x.size(3); }
};

// The form in which a call is passed to cuDNN or cuBLAS.
struct ConvolutionForm {
  std::int64_t channels = 0;         // of x and the filter; missing ones are filled with zeros
  bool folded = false;               // stride² pixels become channels of one pixel: see kernels.h
  bool unrolled = false;             // folded, then multiplied as a matrix of all windows
  bool fused = false;                // cuDNN adds the bias and applies ReLU itself
  Type filter_gradient = Type::f32;  // the type that cuDNN writes, before it is converted to f32
};

// The forms for cuDNN without fusing, which differ in channels and folding. Forms that are likely
// to be fast come first.
std::vector<ConvolutionForm> plain_forms(const ConvolutionCall& call);

// The form for cuBLAS, if there is one.
std::optional<ConvolutionForm> unrolled_form(const ConvolutionCall& call);

// How a folded form folds x and the filter.
Fold fold_of_x(const ConvolutionCall& call, const ConvolutionForm& form);
Fold fold_of_filter(const ConvolutionCall& call, const ConvolutionForm& form);

dnn::ConvolutionGraph graph_of(const ConvolutionCall& call, const ConvolutionForm& form);

std::string text_of(const ConvolutionCall& call);

// Everything that a choice depends on, for one GPU.
using CallKey = std::array<std::int64_t, 19>;

CallKey key_of(const Context& context, const ConvolutionCall& call);

}  // namespace tandem::cuda

// The parts of residual nets.
#pragma once

#include <memory>
#include <vector>

#include "layers/batch_norm.h"
#include "layers/conv2d.h"

namespace tandem {

// A convolution without bias (the norm has one) and a batch norm.
struct ConvNorm {
  ConvNorm(std::int64_t in, std::int64_t out, std::int64_t window, std::int64_t stride,
           const Random& random)
      : conv({.in = in,
              .out = out,
              .window = window,
              .convolution = {.stride = stride, .padding = window / 2},
              .init = Init::he_normal_fan_out},
             random),
        norm(out) {}

  Var forward(Tape& tape, const Var& x) { return norm.forward(tape, conv.forward(tape, x)); }
  Var forward_relu(Tape& tape, const Var& x) {
    return norm.forward_relu(tape, conv.forward(tape, x));
  }

  Conv2d conv;
  BatchNorm2d norm;
};

// relu(body(x) + shortcut(x)). The basic block's body is two 3×3 convolutions of `width` filters;
// the bottleneck's is 1×1 and 3×3 of `width` filters and 1×1 of four times as many. The first 3×3
// has the stride.
class ResidualBlock : public Layer {
 public:
  struct Options {
    std::int64_t in, width, stride;
    bool bottleneck;

    std::int64_t out() const { return bottleneck ? 4 * width : width; }
  };
  ResidualBlock(const Options& options, const Random& random);

  Var forward(Tape& tape, const Var& x) override;
  void collect(const std::string& prefix, std::vector<ParameterSet::Named>& into) override;

 private:
  std::vector<std::unique_ptr<ConvNorm>> body_;
  std::unique_ptr<ConvNorm> shortcut_;  // null: x itself
};

}  // namespace tandem

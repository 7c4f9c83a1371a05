// A layer owns parameters and calls operations. Gradients are computed by autograd/ops.
#pragma once

#include <string>
#include <vector>

#include "autograd/ops.h"
#include "autograd/parameter.h"
#include "autograd/tape.h"

namespace tandem {

class Layer {
 public:
  Layer() = default;
  virtual ~Layer() = default;
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  virtual Var forward(Tape& tape, const Var& x) = 0;
  // relu(forward(x)); a layer may override it to save passes over memory.
  virtual Var forward_relu(Tape& tape, const Var& x) { return relu(tape, forward(tape, x)); }

  // What training minimises, for a layer whose output is logits. A net with auxiliary classifiers
  // overrides it and adds their losses; its forward() does not reach them.
  virtual Var loss(Tape& tape, const Var& x, const Tensor& labels, const CrossEntropy& options) {
    return softmax_cross_entropy(tape, forward(tape, x), labels, options);
  }

  // Appends the layer's parameters in PyTorch's order, named `prefix` plus PyTorch's name. `prefix`
  // is empty or ends in a dot.
  virtual void collect(const std::string& prefix, std::vector<ParameterSet::Named>& into) {
    (void)prefix, (void)into;
  }

  std::vector<ParameterSet::Named> parameters() {
    std::vector<ParameterSet::Named> named;
    collect("", named);
    return named;
  }
};

}  // namespace tandem

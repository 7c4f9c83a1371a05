// A layer owns parameters and calls operations. Gradients are the business of autograd/ops.
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
  // relu(forward(x)), in fewer passes over memory where a layer can.
  virtual Var forward_relu(Tape& tape, const Var& x) { return relu(tape, forward(tape, x)); }

  // Appends the layer's parameters, in PyTorch's order and with PyTorch's names behind `prefix`
  // (which is empty or ends in a dot).
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

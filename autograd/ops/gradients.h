// What backward functions share.
#pragma once

#include "autograd/tape.h"

namespace tandem {

inline GradientInto gradient_into(Tape& tape, int node) {
  const auto slot = tape.gradient_slot(node);
  return slot ? GradientInto{slot->tensor, slot->accumulate} : GradientInto{};
}

// The gradient of z, where y = relu(z) and z's bias was added to its rows. y is undefined if there
// was no ReLU. If the bias' gradient can be computed in the same pass, it is, and `bias` is
// cleared.
inline Tensor gradient_before_relu(const Tape& tape, const Tensor& y, const Tensor& dy,
                                   GradientInto& bias) {
  if (!y.defined() || tape.rectified()) return dy;
  const Tensor dz = dy.shared() ? Tensor::empty(dy.shape(), dy.dtype(), dy.device()) : dy;
  dy.backend().relu_bias_gradient(y, dy, dz, bias);
  bias = {};
  return dz;
}

}  // namespace tandem

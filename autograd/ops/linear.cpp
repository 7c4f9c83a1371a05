#include "autograd/ops.h"
#include "autograd/ops/gradients.h"

namespace tandem {
namespace {

// z = x·Wᵀ + b, y = z or relu(z)      dx = dz·W      dW = dzᵀ·x      db = Σ_n dz
Var linear(Tape& tape, const Var& x, const Var& weight, const Var& bias, bool relu) {
  require(x.value.shape().rank() == 2 && x.value.size(1) == weight.value.size(1),
          "a linear layer with weight {} cannot take input {}", weight.value.shape(),
          x.value.shape());
  require(bias.value.shape() == Shape{weight.value.size(0)}, "weight {} does not fit bias {}",
          weight.value.shape(), bias.value.shape());

  const Tensor y =
      Tensor::empty({x.value.size(0), weight.value.size(0)}, x.value.dtype(), x.value.device());
  y.backend().linear(x.value, weight.value, bias.value, relu, y);

  const Tensor rectified_y = relu ? y : Tensor();
  Var result = tape.record(
      y, {x.node, weight.node, bias.node},
      [x, weight, bias_node = bias.node, rectified_y](Tape& t, const Tensor& dy) {
        LinearGradients into{.weight = gradient_into(t, weight.node),
                             .bias = gradient_into(t, bias_node)};
        const Tensor dz = gradient_before_relu(t, rectified_y, dy, into.bias);
        if (x.node ==
            weight.node) {  // both gradients have the same destination: one after the other
          dy.backend().linear_gradient(x.value, weight.value, dz, false, into);
          into = {};
        }
        into.x = gradient_into(t, x.node);
        dy.backend().linear_gradient(x.value, weight.value, dz, x.rectified, into);
        if (x.rectified) t.rectify(x.node);
      });
  result.rectified = relu;
  return result;
}

}  // namespace

Var linear(Tape& tape, const Var& x, const Var& weight, const Var& bias) {
  return linear(tape, x, weight, bias, false);
}

Var linear_relu(Tape& tape, const Var& x, const Var& weight, const Var& bias) {
  return linear(tape, x, weight, bias, true);
}

}  // namespace tandem

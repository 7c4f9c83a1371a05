#include <array>
#include <span>

#include "autograd/ops.h"
#include "tensor/backend.h"

namespace tandem {

// y = x·Wᵀ + b      dx = dy·W      dW = dyᵀ·x      db = Σ_n dy
Var linear(Tape& tape, const Var& x, const Var& weight, const Var& bias) {
  require(x.value.shape().rank() == 2 && x.value.size(1) == weight.value.size(1),
          "a linear layer with weight {} cannot take input {}", weight.value.shape(),
          x.value.shape());
  require(bias.value.shape() == Shape{weight.value.size(0)}, "weight {} does not fit bias {}",
          weight.value.shape(), bias.value.shape());

  Tensor y =
      Tensor::empty({x.value.size(0), weight.value.size(0)}, x.value.dtype(), x.value.device());
  Backend& backend = y.backend();
  backend.matmul({.a = x.value, .b = weight.value, .transpose_b = true, .c = y});
  backend.add_bias(bias.value, y);

  return tape.record(
      std::move(y), {x.node, weight.node, bias.node},
      [x, weight, bias_node = bias.node](Tape& t, const Tensor& dy) {
        std::array<Matmul, 2> products;
        std::size_t count = 0;
        if (auto dw = t.gradient_slot(weight.node))
          products[count++] = {.a = dy,
                               .transpose_a = true,
                               .b = x.value,
                               .c = dw->tensor,
                               .accumulate = dw->accumulate};
        if (auto dx = t.gradient_slot(x.node))
          products[count++] = {
              .a = dy, .b = weight.value, .c = dx->tensor, .accumulate = dx->accumulate};
        // Both in one call, since each alone may be too small to fill all threads; unless they go
        // to the same place, because x is the weight.
        const std::span<const Matmul> both(products.data(), count);
        if (x.node == weight.node)
          for (const Matmul& product : both) dy.backend().matmul(product);
        else
          dy.backend().matmul(both);
        if (auto db = t.gradient_slot(bias_node))
          dy.backend().sum_rows(dy, db->tensor, db->accumulate);
      });
}

}  // namespace tandem

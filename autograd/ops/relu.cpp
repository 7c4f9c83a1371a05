#include "autograd/ops.h"
#include "tensor/backend.h"

namespace tandem {

// y = max(x, 0)      dx = 0 where y <= 0, else dy
Var relu(Tape& tape, const Var& x) {
  Tensor y = Tensor::empty(x.value.shape(), x.value.dtype(), x.value.device());
  y.backend().relu(x.value, y);
  return tape.record(y, {x.node}, [y, node = x.node](Tape& t, const Tensor& dy) {
    if (auto dx = t.gradient_slot(node))
      dy.backend().relu_gradient(y, dy, dx->tensor, dx->accumulate);
  });
}

}  // namespace tandem

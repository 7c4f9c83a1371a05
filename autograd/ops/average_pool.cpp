#include "autograd/ops.h"
#include "autograd/ops/pool_shape.h"

namespace tandem {

// y = Σ x / pixels over each window      dx = Σ dy / pixels over the windows that x is in
Var average_pool(Tape& tape, const Var& x, const Pool& pool) {
  const Tensor y =
      Tensor::empty(pool_shape(pool, x.value.shape()), x.value.dtype(), x.value.device());
  y.backend().average_pool(pool, x.value, y);
  return tape.record(y, {x.node}, [node = x.node, pool](Tape& t, const Tensor& dy) {
    if (auto dx = t.gradient_slot(node))
      dy.backend().average_pool_gradient(pool, dy, dx->tensor, dx->accumulate);
  });
}

}  // namespace tandem

#include "autograd/ops.h"
#include "autograd/ops/pool_shape.h"

namespace tandem {

// y = the largest x of each window      dx = Σ dy of the windows in which x is the largest
Var max_pool(Tape& tape, const Var& x, const Pool& pool) {
  const Tensor y =
      Tensor::empty(pool_shape(pool, x.value.shape()), x.value.dtype(), x.value.device());
  const Tensor winners = Tensor::empty(y.shape(), Dtype::u8, x.value.device());
  y.backend().max_pool(pool, x.value, y, winners);
  return tape.record(y, {x.node}, [node = x.node, pool, winners](Tape& t, const Tensor& dy) {
    if (auto dx = t.gradient_slot(node))
      dy.backend().max_pool_gradient(pool, winners, dy, dx->tensor, dx->accumulate);
  });
}

}  // namespace tandem

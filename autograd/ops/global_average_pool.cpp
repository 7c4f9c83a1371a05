#include "autograd/ops.h"
#include "tensor/backend.h"

namespace tandem {

// y[n, c] = Σ x[n, ·, ·, c] / pixels      dx = dy / pixels
Var global_average_pool(Tape& tape, const Var& x) {
  const Shape& in = x.value.shape();
  require(in.rank() == 4 && in[1] * in[2] > 0, "the images {} have no pixels to average", in);
  Tensor y = Tensor::empty({in[0], in[3]}, x.value.dtype(), x.value.device());
  y.backend().global_average_pool(x.value, y);
  return tape.record(std::move(y), {x.node}, [node = x.node](Tape& t, const Tensor& dy) {
    if (auto dx = t.gradient_slot(node))
      dy.backend().global_average_pool_gradient(dy, dx->tensor, dx->accumulate);
  });
}

}  // namespace tandem

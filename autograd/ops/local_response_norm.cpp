#include "autograd/ops.h"
#include "tensor/backend.h"

namespace tandem {

// With s = k + alpha/size · Σ x² over the neighbours:
//   y = x·s^-beta      dx = dy·s^-beta - 2·beta·alpha/size · x · Σ dy·x·s^(-beta-1)
// where the second sum is over those of which x is a neighbour.
Var local_response_norm(Tape& tape, const Var& x, const LocalResponseNorm& norm) {
  require(norm.size >= 1 && x.value.shape().rank() >= 2,
          "a response normalisation over {} channels cannot take input {}", norm.size,
          x.value.shape());
  Tensor y = Tensor::empty(x.value.shape(), x.value.dtype(), x.value.device());
  y.backend().local_response_norm(norm, x.value, y);
  return tape.record(std::move(y), {x.node}, [x, norm](Tape& t, const Tensor& dy) {
    if (auto dx = t.gradient_slot(x.node))
      dy.backend().local_response_norm_gradient(norm, x.value, dy, dx->tensor, dx->accumulate);
  });
}

}  // namespace tandem

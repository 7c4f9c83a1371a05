#include "autograd/ops.h"
#include "tensor/backend.h"

namespace tandem {

// y = a + b      da = dy      db = dy
Var add(Tape& tape, const Var& a, const Var& b) {
  require(a.value.shape() == b.value.shape(), "{} and {} cannot be added", a.value.shape(),
          b.value.shape());
  Tensor y = Tensor::empty(a.value.shape(), a.value.dtype(), a.value.device());
  y.backend().add(a.value, b.value, y);
  return tape.record(std::move(y), {a.node, b.node},
                     [a_node = a.node, b_node = b.node](Tape& t, const Tensor& dy) {
                       t.add_gradient(a_node, dy);
                       t.add_gradient(b_node, dy);
                     });
}

}  // namespace tandem

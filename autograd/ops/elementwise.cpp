// Element-wise operations, and flatten.
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

// y = max(x, 0)      dx = 0 where y <= 0, else dy
Var relu(Tape& tape, const Var& x) {
  Tensor y = Tensor::empty(x.value.shape(), x.value.dtype(), x.value.device());
  y.backend().relu(x.value, y);
  return tape.record(y, {x.node}, [y, node = x.node](Tape& t, const Tensor& dy) {
    if (auto dx = t.gradient_slot(node))
      dy.backend().relu_gradient(y, dy, dx->tensor, dx->accumulate);
  });
}

// y = x · mask / keep      dx = dy · mask / keep, with the mask drawn again from its stream
Var dropout(Tape& tape, const Var& x, double drop) {
  require(drop >= 0 && drop < 1, "the drop probability must be in [0, 1), not {}", drop);
  if (!tape.training() || drop == 0) return x;
  const double keep = 1 - drop;
  const StepRandom random = tape.next_random();
  Tensor y = Tensor::empty(x.value.shape(), x.value.dtype(), x.value.device());
  y.backend().dropout(x.value, keep, random, y, false);
  return tape.record(std::move(y), {x.node},
                     [node = x.node, keep, random](Tape& t, const Tensor& dy) {
                       if (auto dx = t.gradient_slot(node))
                         dy.backend().dropout(dy, keep, random, dx->tensor, dx->accumulate);
                     });
}

// The elements are shared in both directions.
Var flatten(Tape& tape, const Var& x) {
  const Shape row(x.value.shape().sizes().subspan(1));  // correct for an empty batch too
  return tape.record(x.value.reshape({x.value.size(0), row.count()}), {x.node},
                     [node = x.node, shape = x.value.shape()](Tape& t, const Tensor& dy) {
                       t.add_gradient(node, dy.reshape(shape));
                     });
}

}  // namespace tandem

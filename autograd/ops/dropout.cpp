#include "autograd/ops.h"
#include "tensor/backend.h"

namespace tandem {

// y = x · mask / keep      dx = dy · mask / keep, with the mask drawn again from its stream
Var dropout(Tape& tape, const Var& x, double drop) {
  require(drop >= 0 && drop < 1, "the probability to drop must lie in [0, 1), not at {}", drop);
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

}  // namespace tandem

#include "autograd/ops.h"

namespace tandem {

// The elements stay where they are, in both directions.
Var flatten(Tape& tape, const Var& x) {
  const Shape row(x.value.shape().sizes().subspan(1));  // also right for an empty batch
  return tape.record(x.value.reshape({x.value.size(0), row.count()}), {x.node},
                     [node = x.node, shape = x.value.shape()](Tape& t, const Tensor& dy) {
                       t.add_gradient(node, dy.reshape(shape));
                     });
}

}  // namespace tandem

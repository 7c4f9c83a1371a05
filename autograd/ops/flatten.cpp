#include "autograd/ops.h"

namespace tandem {

// The elements stay where they are, in both directions.
Var flatten(Tape& tape, const Var& x) {
  const std::int64_t rows = x.value.size(0);
  const std::int64_t columns = rows == 0 ? 0 : x.value.count() / rows;
  return tape.record(x.value.reshape({rows, columns}), {x.node},
                     [node = x.node, shape = x.value.shape()](Tape& t, const Tensor& dy) {
                       t.add_gradient(node, dy.reshape(shape));
                     });
}

}  // namespace tandem

#include "autograd/ops.h"
#include "tensor/backend.h"

namespace tandem {

// y = Σ x / pixels over each window      dx = Σ dy / pixels over the windows that x is in
Var adaptive_average_pool(Tape& tape, const Var& x, std::int64_t height, std::int64_t width) {
  const Shape& in = x.value.shape();
  require(in.rank() == 4 && in[1] * in[2] > 0 && height > 0 && width > 0,
          "the images {} cannot be averaged to {} x {} pixels", in, height, width);
  if (in[1] == height && in[2] == width) return x;
  Tensor y = Tensor::empty({in[0], height, width, in[3]}, x.value.dtype(), x.value.device());
  y.backend().adaptive_average_pool(x.value, y);
  return tape.record(std::move(y), {x.node}, [node = x.node](Tape& t, const Tensor& dy) {
    if (auto dx = t.gradient_slot(node))
      dy.backend().adaptive_average_pool_gradient(dy, dx->tensor, dx->accumulate);
  });
}

}  // namespace tandem

// Pooling: the maximum or the mean of windows of images.
#include "autograd/ops.h"
#include "tensor/backend.h"

namespace tandem {
namespace {

// The shape of the result. Throws if windows and images do not fit, as PyTorch does.
Shape pool_shape(const Pool& pool, const Shape& x) {
  require(pool.window >= 1 && pool.window <= Pool::kLargestWindow && pool.stride >= 1 &&
              pool.padding >= 0 && 2 * pool.padding <= pool.window,
          "pooling cannot have window {}, stride {} and padding {}: windows are at most {} wide "
          "and padding at most half of that",
          pool.window, pool.stride, pool.padding, Pool::kLargestWindow);
  require(x.rank() == 4 && x[1] >= 1 && x[2] >= 1 && pool.positions(x[1]) >= 1 &&
              pool.positions(x[2]) >= 1,
          "pooling with window {} cannot take input {}", pool.window, x);
  return {x[0], pool.positions(x[1]), pool.positions(x[2]), x[3]};
}

}  // namespace

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

#include <algorithm>

#include "autograd/ops.h"
#include "autograd/ops/gradients.h"

namespace tandem {
namespace {

// z = x * W + b, y = z or relu(z)
// dx = dz * Wᵀ rotated by 180°      dW = x * dz      db = Σ over all pixels of dz
Var conv2d(Tape& tape, const Var& x, const Var& filter, const Var& bias,
           const Convolution& convolution, bool relu) {
  const Shape& in = x.value.shape();
  const Shape& f = filter.value.shape();
  const Convolution& o = convolution;
  require(std::min(o.stride.height, o.stride.width) >= 1 &&
              std::min(o.padding.height, o.padding.width) >= 0 && o.dilation >= 1 && o.groups >= 1,
          "a convolution cannot have stride {}, padding {}, dilation {} and {} groups", o.stride,
          o.padding, o.dilation, o.groups);
  require(in.rank() == 4 && f.rank() == 4 && f.count() > 0 && in[3] == f[3] * o.groups &&
              f[0] % o.groups == 0 && o.rows(in[1], f[1]) >= 1 && o.columns(in[2], f[2]) >= 1,
          "a convolution with filters {} in {} groups cannot take input {}", f, o.groups, in);
  require(!bias.value.defined() || bias.value.shape() == Shape{f[0]},
          "filters {} do not fit bias {}", f, bias.value.shape());

  const Tensor y = Tensor::empty({in[0], o.rows(in[1], f[1]), o.columns(in[2], f[2]), f[0]},
                                 x.value.dtype(), x.value.device());
  y.backend().conv2d(o, x.value, filter.value, bias.value, relu, y);

  const Tensor rectified_y = relu ? y : Tensor();
  Var result =
      tape.record(y, {x.node, filter.node, bias.node},
                  [x, filter, bias_node = bias.node, rectified_y, o](Tape& t, const Tensor& dy) {
                    Backend& backend = dy.backend();
                    GradientInto db = gradient_into(t, bias_node);
                    const Tensor dz = gradient_before_relu(t, rectified_y, dy, db);
                    if (auto dw = t.gradient_slot(filter.node))
                      backend.conv2d_filter_gradient(o, x.value, dz, dw->tensor, dw->accumulate);
                    if (db.tensor.defined()) backend.sum_rows(dz, db.tensor, db.accumulate);
                    if (auto dx = t.gradient_slot(x.node))
                      backend.conv2d_data_gradient(o, dz, filter.value, dx->tensor, dx->accumulate);
                  });
  result.rectified = relu;
  return result;
}

}  // namespace

Var conv2d(Tape& tape, const Var& x, const Var& filter, const Var& bias,
           const Convolution& convolution) {
  return conv2d(tape, x, filter, bias, convolution, false);
}

Var conv2d_relu(Tape& tape, const Var& x, const Var& filter, const Var& bias,
                const Convolution& convolution) {
  return conv2d(tape, x, filter, bias, convolution, true);
}

}  // namespace tandem

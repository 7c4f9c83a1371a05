// Batch normalisation, fused with what may follow it, and local response normalisation.
#include "autograd/ops.h"
#include "autograd/ops/gradients.h"

namespace tandem {

namespace {

// With mean, variance and n of each channel and x̂ = (x - mean) / sqrt(variance + ε):
//   z = w·x̂ + b      y = z, relu(z) or relu(z + residual)      dy' = dy, but 0 where the ReLU is 0
//   db = Σ dy'      dw = Σ dy'·x̂      dresidual = dy'
//   dx = w / sqrt(variance + ε) · (dy' - db/n - x̂·dw/n)
// Backward needs x. With a residual it also needs where y is above 0; without one, it recomputes
// that from x.
Var normalize(Tape& tape, const Var& x, const Var& residual, const BatchNorm& norm,
              ChannelNorm::After after) {
  const Tensor& in = x.value;
  require(in.shape().rank() >= 2, "batch normalisation needs rows of channels, not the shape {}",
          in.shape());
  const Shape channels{in.size(-1)};
  for (const Tensor* t :
       {&norm.weight.value, &norm.bias.value, &norm.running_mean, &norm.running_variance})
    require(t->shape() == channels, "a batch normalisation of {} channels cannot take input {}",
            t->shape(), in.shape());
  require(after != ChannelNorm::After::add_relu || residual.value.shape() == in.shape(),
          "{} and {} cannot be added", in.shape(), residual.value.shape());

  Backend& backend = in.backend();
  const Dtype dtype = norm.weight.value.dtype();  // of all values per channel
  ChannelNorm n{.inverse_deviation = Tensor::empty(channels, dtype, in.device()),
                .weight = norm.weight.value,
                .bias = norm.bias.value,
                .after = after};
  if (tape.training()) {
    if (in.count() <= channels[0])
      throw UserError(
          "batch normalisation cannot train on one value per channel (its input is {}): use a "
          "larger batch per worker or larger images",
          in.shape());
    n.mean = Tensor::empty(channels, dtype, in.device());
    backend.batch_statistics(in, norm.epsilon, n.mean, n.inverse_deviation,
                             {norm.running_mean, norm.running_variance, norm.momentum});
  } else {
    n.mean = norm.running_mean;
    backend.inverse_deviation(norm.running_variance, norm.epsilon, n.inverse_deviation);
  }
  const Tensor y = Tensor::empty(in.shape(), in.dtype(), in.device());
  const Tensor positive = backend.channel_norm(n, in, residual.value, y);
  if (!tape.training()) return Var{y};

  return tape.record(
      y, {x.node, residual.node, norm.weight.node, norm.bias.node},
      [x, positive, n, residual_node = residual.node, weight_node = norm.weight.node,
       bias_node = norm.bias.node](Tape& t, const Tensor& dy, const Tensor& more) {
        ChannelNormGradients gradients{.x = gradient_into(t, x.node),
                                       .weight = gradient_into(t, weight_node),
                                       .bias = gradient_into(t, bias_node)};
        // If the residual is x, its gradient needs separate memory until both are computed.
        const bool apart = x.node == residual_node && x.has_gradient();
        gradients.residual = apart
                                 ? GradientInto{Tensor::empty(dy.shape(), dy.dtype(), dy.device())}
                                 : gradient_into(t, residual_node);
        dy.backend().channel_norm_gradient(n, x.value, positive, dy, more, gradients);
        if (apart) t.add_gradient(residual_node, gradients.residual.tensor);
      });
}

}  // namespace

Var batch_norm(Tape& tape, const Var& x, const BatchNorm& norm) {
  return normalize(tape, x, Var{}, norm, ChannelNorm::After::nothing);
}

Var batch_norm_relu(Tape& tape, const Var& x, const BatchNorm& norm) {
  return normalize(tape, x, Var{}, norm, ChannelNorm::After::relu);
}

Var batch_norm_add_relu(Tape& tape, const Var& x, const Var& residual, const BatchNorm& norm) {
  return normalize(tape, x, residual, norm, ChannelNorm::After::add_relu);
}

// With s = k + alpha/size · Σ x² over the neighbours:
//   y = x·s^-beta      dx = dy·s^-beta - 2·beta·alpha/size · x · Σ dy·x·s^(-beta-1)
// where the second sum is over the channels that have x as a neighbour.
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

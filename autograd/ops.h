// Differentiable operations. Each has its own file under ops/, with forward and gradient side by
// side, and a gradient check in tests/autograd.
#pragma once

#include <span>

#include "autograd/tape.h"
#include "tensor/backend.h"

namespace tandem {

// x[n, in] · weight[out, in]ᵀ + bias[out], as torch.nn.Linear computes it.
Var linear(Tape& tape, const Var& x, const Var& weight, const Var& bias);
Var linear_relu(Tape& tape, const Var& x, const Var& weight, const Var& bias);

// x[n, h, w, c] convolved with filter[k, r, s, c / groups], plus bias[k] unless that is undefined.
// The result [n, p, q, k] is that of torch.nn.functional.conv2d, apart from the layout.
Var conv2d(Tape& tape, const Var& x, const Var& filter, const Var& bias,
           const Convolution& convolution = {});
Var conv2d_relu(Tape& tape, const Var& x, const Var& filter, const Var& bias,
                const Convolution& convolution = {});

// Over windows of [n, h, w, c] images; see Pool in tensor/backend.h.
Var max_pool(Tape& tape, const Var& x, const Pool& pool);
Var average_pool(Tape& tape, const Var& x, const Pool& pool);
// To [n, height, width, c], as torch.nn.AdaptiveAvgPool2d does; x itself if it has that size.
Var adaptive_average_pool(Tape& tape, const Var& x, std::int64_t height, std::int64_t width);
Var global_average_pool(Tape& tape, const Var& x);  // [n, h, w, c] to [n, c]

// Batch normalisation over all but the last size, per channel. Training uses the mean and variance
// of the batch and moves the running ones towards them; inference uses the running ones. Throws
// UserError if a batch has one value per channel, which has no variance.
struct BatchNorm {
  Var weight, bias;                       // [c]
  Tensor running_mean, running_variance;  // [c], changed in place by training
  double epsilon = 1e-5;
  double momentum = 0.1;  // weight of the batch in the running statistics
};
Var batch_norm(Tape& tape, const Var& x, const BatchNorm& norm);
// relu(batch_norm(x)) and relu(batch_norm(x) + residual), each in as few passes over memory as
// possible.
Var batch_norm_relu(Tape& tape, const Var& x, const BatchNorm& norm);
Var batch_norm_add_relu(Tape& tape, const Var& x, const Var& residual, const BatchNorm& norm);

// Over neighbouring channels, as torch.nn.LocalResponseNorm computes it; see tensor/backend.h.
Var local_response_norm(Tape& tape, const Var& x, const LocalResponseNorm& norm = {});

// The last dimensions side by side, such as the channels of images [n, h, w, c]; all other sizes
// are equal. torch.cat(parts, 1) does this to [n, c, h, w].
Var concat(Tape& tape, std::span<const Var> parts);

Var add(Tape& tape, const Var& a, const Var& b);  // same shapes

Var relu(Tape& tape, const Var& x);

// [n, …] to [n, product of the rest]: shares the elements.
Var flatten(Tape& tape, const Var& x);

// In training, zeroes each element with probability `drop` and scales the rest by 1/(1 - drop).
Var dropout(Tape& tape, const Var& x, double drop);

struct CrossEntropy {
  double smoothing = 0;  // share of the target that is spread evenly over all classes
  // The loss is the sum over the rows divided by this; 0 means the number of rows. A worker that
  // holds a part of a global batch passes the global size, so that the workers' gradients add up to
  // that of the mean.
  std::int64_t batch = 0;
  double weight = 1;  // of this loss in a sum of several
};
// Mean softmax cross-entropy of logits[n, classes] against labels[n] (i32), times the weight: one
// number.
Var softmax_cross_entropy(Tape& tape, const Var& logits, const Tensor& labels,
                          const CrossEntropy& options = {});

}  // namespace tandem

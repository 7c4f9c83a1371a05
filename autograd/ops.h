// Differentiable operations. Each lives in a file of its own under ops/, its gradient beside it,
// and has a gradient check in tests/autograd.
#pragma once

#include "autograd/tape.h"

namespace tandem {

// x[n, in] · weight[out, in]ᵀ + bias[out], as torch.nn.Linear computes it.
Var linear(Tape& tape, const Var& x, const Var& weight, const Var& bias);

Var add(Tape& tape, const Var& a, const Var& b);  // same shapes

Var relu(Tape& tape, const Var& x);

// [n, …] to [n, product of the rest]: shares the elements.
Var flatten(Tape& tape, const Var& x);

// In training, zeroes each element with probability `drop` and scales the rest by 1/(1 - drop).
Var dropout(Tape& tape, const Var& x, double drop);

struct CrossEntropy {
  double smoothing = 0;  // share of the target spread evenly over all classes
  // The loss is the sum over the rows divided by this; 0 means the number of rows. Workers that
  // hold a part of a global batch pass its full size, so that their gradients add up to its mean.
  std::int64_t batch = 0;
};
// Mean softmax cross-entropy of logits[n, classes] against labels[n] (i32): one number.
Var softmax_cross_entropy(Tape& tape, const Var& logits, const Tensor& labels,
                          const CrossEntropy& options = {});

}  // namespace tandem

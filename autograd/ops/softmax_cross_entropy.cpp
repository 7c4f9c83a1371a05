#include "autograd/ops.h"
#include "tensor/backend.h"

namespace tandem {

// With p = softmax(x) and the smoothed target q, and s = weight / batch:
//   loss = -s · Σ q·log p,  dx = s · (p - q)
Var softmax_cross_entropy(Tape& tape, const Var& logits, const Tensor& labels,
                          const CrossEntropy& options) {
  const Tensor& x = logits.value;
  require(x.shape().rank() == 2 && labels.shape() == Shape{x.size(0)},
          "logits {} do not fit labels {}", x.shape(), labels.shape());
  const std::int64_t batch = options.batch > 0 ? options.batch : x.size(0);
  const double scale = options.weight / static_cast<double>(batch);

  const Dtype dtype = x.dtype() == Dtype::bf16 ? Dtype::f32 : x.dtype();
  const Tensor probabilities = Tensor::empty(x.shape(), dtype, x.device());
  Tensor loss = Tensor::empty({}, dtype, x.device());
  x.backend().softmax_cross_entropy(x, labels, options.smoothing, scale, probabilities, loss);
  return tape.record(std::move(loss), {logits.node},
                     [probabilities, labels, smoothing = options.smoothing, scale,
                      node = logits.node](Tape& t, const Tensor& dy) {
                       if (auto dx = t.gradient_slot(node))
                         dy.backend().softmax_cross_entropy_gradient(probabilities, labels,
                                                                     smoothing, scale, dy,
                                                                     dx->tensor, dx->accumulate);
                     });
}

}  // namespace tandem

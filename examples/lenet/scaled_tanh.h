// A user-defined operation: y = A·tanh(S·x), the activation of LeNet-5 (LeCun et al., 1998).
#pragma once

#include <cmath>

#include "layers/layer.h"

namespace lenet {

using namespace tandem;

template <class T>
constexpr T kA = T(1.7159);
template <class T>
constexpr T kS = T(2) / T(3);

// T is float in training and double in the gradient check.
template <class T>
void tanh_forward(const Tensor& x, const Tensor& y) {
  const auto from = x.span<T>(), to = y.span<T>();
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = kA<T> * std::tanh(kS<T> * from[i]);
}

template <class T>
void tanh_backward(const Tensor& y, const Tensor& dy, const GradientSlot& dx) {
  const auto result = y.span<T>(), from = dy.span<T>(), to = dx.tensor.span<T>();
  for (std::size_t i = 0; i < to.size(); ++i) {
    const T slope = kS<T> * (kA<T> - result[i] * result[i] / kA<T>);
    to[i] = (dx.accumulate ? to[i] : 0) + from[i] * slope;
  }
}

// y = A·tanh(S·x)      dx = dy · S·(A - y²/A)
inline Var scaled_tanh(Tape& tape, const Var& x) {
  if (!x.value.device().is_cpu()) throw UserError("scaled_tanh has no kernel for a GPU");
  const bool f64 = x.value.dtype() == Dtype::f64;
  Tensor y = Tensor::empty(x.value.shape(), x.value.dtype(), x.value.device());
  f64 ? tanh_forward<double>(x.value, y) : tanh_forward<float>(x.value, y);
  return tape.record(y, {x.node}, [y, f64, node = x.node](Tape& t, const Tensor& dy) {
    if (const auto dx = t.gradient_slot(node))
      f64 ? tanh_backward<double>(y, dy, *dx) : tanh_backward<float>(y, dy, *dx);
  });
}

// The operation as a layer, so that a Sequential can hold it.
class ScaledTanh : public Layer {
 public:
  Var forward(Tape& tape, const Var& x) override { return scaled_tanh(tape, x); }
};

}  // namespace lenet

#include "layers/conv2d.h"

namespace tandem {
namespace {

Shape filter_shape(const Conv2d::Options& o) {
  return {o.out, o.window.height, o.window.width, o.in / o.convolution.groups};
}

}  // namespace

Conv2d::Conv2d(const Options& o, const Random& random)
    : convolution_(o.convolution),
      weight_(filter_shape(o), later(o.init, filter_shape(o), random), o.role) {
  weight_.image = {o.window.height, o.window.width, o.in / o.convolution.groups};
  if (o.bias) bias_.emplace(Shape{o.out}, later(Init::zeros, {o.out}, random), o.role);
}

Var Conv2d::forward(Tape& tape, const Var& x) {
  const Var weight = tape.use(weight_);
  return conv2d(tape, x, weight, bias_ ? tape.use(*bias_) : Var{}, convolution_);
}

Var Conv2d::forward_relu(Tape& tape, const Var& x) {
  const Var weight = tape.use(weight_);
  return conv2d_relu(tape, x, weight, bias_ ? tape.use(*bias_) : Var{}, convolution_);
}

void Conv2d::collect(const std::string& prefix, std::vector<ParameterSet::Named>& into) {
  into.push_back({prefix + "weight", &weight_});
  if (bias_) into.push_back({prefix + "bias", &*bias_});
}

}  // namespace tandem

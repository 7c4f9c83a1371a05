#include "layers/linear.h"

namespace tandem {

Linear::Linear(const Options& o, const Random& random)
    : weight_({o.out, o.in}, later(o.init, {o.out, o.in}, random), o.role),
      bias_({o.out}, later(Init::zeros, {o.out}, random), o.role) {
  require(o.image.rank() == 0 || o.image.count() == o.in, "an image {} does not have {} elements",
          o.image, o.in);
  weight_.image = o.image;
}

Var Linear::forward(Tape& tape, const Var& x) {
  const Var weight = tape.use(weight_);
  const Var bias = tape.use(bias_);
  return linear(tape, x, weight, bias);
}

Var Linear::forward_relu(Tape& tape, const Var& x) {
  const Var weight = tape.use(weight_);
  const Var bias = tape.use(bias_);
  return linear_relu(tape, x, weight, bias);
}

void Linear::collect(const std::string& prefix, std::vector<ParameterSet::Named>& into) {
  into.push_back({prefix + "weight", &weight_});
  into.push_back({prefix + "bias", &bias_});
}

}  // namespace tandem

#include "layers/linear.h"

namespace tandem {

Linear::Linear(std::int64_t in, std::int64_t out, Init init, const Random& random)
    : weight_({out, in}, initial_values(init, {out, in}, random)),
      bias_({out}, initial_values(Init::zeros, {out}, random)) {}

Var Linear::forward(Tape& tape, const Var& x) {
  const Var weight = tape.use(weight_);
  const Var bias = tape.use(bias_);
  return linear(tape, x, weight, bias);
}

void Linear::collect(const std::string& prefix, std::vector<ParameterSet::Named>& into) {
  into.push_back({prefix + "weight", &weight_});
  into.push_back({prefix + "bias", &bias_});
}

}  // namespace tandem

#include "layers/batch_norm.h"

namespace tandem {
namespace {

std::vector<float> all(std::int64_t count, float value) {
  return std::vector<float>(static_cast<std::size_t>(count), value);
}

}  // namespace

BatchNorm2d::BatchNorm2d(std::int64_t channels, double epsilon)
    : weight_({channels}, all(channels, 1)),
      bias_({channels}, all(channels, 0)),
      running_mean_({channels}, all(channels, 0), Role::statistic),
      running_variance_({channels}, all(channels, 1), Role::statistic),
      epsilon_(epsilon) {}

Var BatchNorm2d::forward(Tape& tape, const Var& x) { return batch_norm(tape, x, use(tape)); }

Var BatchNorm2d::forward_relu(Tape& tape, const Var& x) {
  return batch_norm_relu(tape, x, use(tape));
}

Var BatchNorm2d::forward_add_relu(Tape& tape, const Var& x, const Var& residual) {
  return batch_norm_add_relu(tape, x, residual, use(tape));
}

BatchNorm BatchNorm2d::use(Tape& tape) {
  const Var weight = tape.use(weight_);
  const Var bias = tape.use(bias_);
  return {weight, bias, running_mean_.value, running_variance_.value, epsilon_};
}

void BatchNorm2d::collect(const std::string& prefix, std::vector<ParameterSet::Named>& into) {
  into.push_back({prefix + "weight", &weight_});
  into.push_back({prefix + "bias", &bias_});
  into.push_back({prefix + "running_mean", &running_mean_});
  into.push_back({prefix + "running_var", &running_variance_});
}

}  // namespace tandem

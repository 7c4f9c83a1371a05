#include "autograd/sgd.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "tensor/state.h"

namespace tandem {
namespace {

// Iterations are counted from 0 here.
double rate_without_warmup(const Schedule& s, std::int64_t done) {
  switch (s.kind) {
    case Schedule::Kind::constant:
      return s.base;
    case Schedule::Kind::step:
      return s.base * std::pow(s.step_factor, static_cast<double>(done / s.step_every));
    case Schedule::Kind::cosine: {
      const double share =
          std::min(1.0, static_cast<double>(done) / static_cast<double>(s.iterations));
      return s.base * 0.5 * (1 + std::cos(std::numbers::pi * share));
    }
  }
  return s.base;
}

}  // namespace

double Schedule::rate(std::int64_t iteration) const {
  require(iteration >= 1, "iterations count from 1, not {}", iteration);
  const double rate = rate_without_warmup(*this, iteration - 1);
  if (iteration > warmup) return rate;
  return rate * static_cast<double>(iteration) / static_cast<double>(warmup);
}

Sgd::Sgd(ParameterSet& parameters, const SgdOptions& options)
    : parameters_(&parameters), options_(options) {
  require(!options.nesterov || options.momentum > 0, "Nesterov's variant needs momentum");
}

SgdStep Sgd::step(std::int64_t iteration) const {
  return {.rate = rate(iteration),
          .momentum = options_.momentum,
          .weight_decay = options_.weight_decay,
          .nesterov = options_.nesterov,
          .gradient_has_momentum = options_.gradient_has_momentum};
}

void Sgd::update(std::int64_t iteration, const Tensor& gradient) {
  parameters_->device().backend().sgd(step(iteration), gradient, parameters_->momenta(),
                                      parameters_->values(), parameters_->low_values());
}

void Sgd::update_part(std::int64_t iteration, std::int64_t first, std::int64_t count) {
  const auto part = [&](const Tensor& flat) {
    return flat.defined() ? flat.view(first, {count}) : Tensor();
  };
  parameters_->device().backend().sgd(step(iteration), part(parameters_->gradients()),
                                      part(parameters_->momenta()), part(parameters_->values()),
                                      part(parameters_->low_values()));
}

void Sgd::visit(State& state) {
  Tensor momenta = parameters_->momenta();
  state("momenta", momenta);
}

}  // namespace tandem

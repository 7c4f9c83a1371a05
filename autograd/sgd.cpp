#include "autograd/sgd.h"

#include "tensor/state.h"

namespace tandem {

Sgd::Sgd(ParameterSet& parameters, const SgdOptions& options)
    : parameters_(&parameters), options_(options) {
  require(!options.nesterov || options.momentum > 0, "Nesterov's variant needs momentum");
}

SgdStep Sgd::step(std::int64_t iteration) const {
  return {.rate = rate(iteration),
          .momentum = options_.momentum,
          .weight_decay = options_.weight_decay,
          .nesterov = options_.nesterov};
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

#include "autograd/sgd.h"

#include "tensor/backend.h"

namespace tandem {

Sgd::Sgd(ParameterSet& parameters, const SgdOptions& options)
    : parameters_(&parameters), options_(options) {
  require(!options.nesterov || options.momentum > 0, "Nesterov's variant needs momentum");
}

void Sgd::update(std::int64_t iteration, const Tensor& gradient) {
  const SgdStep step{.rate = rate(iteration),
                     .momentum = options_.momentum,
                     .weight_decay = options_.weight_decay,
                     .nesterov = options_.nesterov};
  parameters_->device().backend().sgd(step, gradient, parameters_->momenta(),
                                      parameters_->values());
}

}  // namespace tandem

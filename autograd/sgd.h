// Stochastic gradient descent with momentum, Nesterov's variant and weight decay, as
// torch.optim.SGD defines them (the step is written out at SgdStep in tensor/backend.h).
#pragma once

#include <cstdint>

#include "autograd/parameter.h"
#include "autograd/schedule.h"
#include "tensor/backend.h"

namespace tandem {

struct SgdOptions {
  Schedule schedule;
  double momentum = 0;
  double weight_decay = 0;
  bool nesterov = false;
};

class Sgd {
 public:
  // The set must outlive the optimizer.
  Sgd(ParameterSet& parameters, const SgdOptions& options);

  // Applies `gradient`, laid out like the flat gradient, with the rate of `iteration`.
  void update(std::int64_t iteration, const Tensor& gradient);
  void update(std::int64_t iteration) { update(iteration, parameters_->gradients()); }
  // Updates only `count` elements of the flat buffers from `first` on, with the set's own gradient.
  void update_part(std::int64_t iteration, std::int64_t first, std::int64_t count);

  // The momenta, to be saved or loaded.
  void visit(State& state);

  double rate(std::int64_t iteration) const { return options_.schedule.rate(iteration); }

 private:
  SgdStep step(std::int64_t iteration) const;

  ParameterSet* parameters_;
  SgdOptions options_;
};

}  // namespace tandem

// Stochastic gradient descent with momentum, Nesterov's variant and weight decay, as
// torch.optim.SGD defines them. The step is written out at SgdStep in tensor/backend.h.
#pragma once

#include <cstdint>

#include "autograd/parameter.h"
#include "base/names.h"
#include "tensor/backend.h"

namespace tandem {

// The learning rate as a function of the iteration, counted from 1.
struct Schedule {
  enum class Kind { constant, step, cosine };

  Kind kind = Kind::constant;
  double base = 0.1;            // the rate that all kinds start from
  std::int64_t iterations = 1;  // cosine: falls to 0 over this many
  std::int64_t step_every = 1;  // step: multiplied by step_factor after this many
  double step_factor = 0.1;
  std::int64_t warmup = 0;  // first rises linearly to the kind's rate over this many

  double rate(std::int64_t iteration) const;
};

template <>
struct NamesOf<Schedule::Kind> {
  static constexpr const char* names[] = {"constant", "step", "cosine"};
};

struct SgdOptions {
  Schedule schedule;
  double momentum = 0;
  double weight_decay = 0;
  bool nesterov = false;
  bool gradient_has_momentum = false;  // then only the weight decay gets one
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

  // The same optimizer, of the same weights, with this share of the weight decay. For servers that
  // update p times per iteration, once per worker.
  Sgd with_share_of_decay(double share) const {
    Sgd other = *this;
    other.options_.weight_decay *= share;
    return other;
  }

  // The same optimizer for gradients that have no momentum yet.
  Sgd with_momentum_of_gradient() const {
    Sgd other = *this;
    other.options_.gradient_has_momentum = false;
    return other;
  }

  // The momenta, to be saved or loaded.
  void visit(State& state);

  double rate(std::int64_t iteration) const { return options_.schedule.rate(iteration); }

 private:
  SgdStep step(std::int64_t iteration) const;

  ParameterSet* parameters_;
  SgdOptions options_;
};

}  // namespace tandem

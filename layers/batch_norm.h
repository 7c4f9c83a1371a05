#pragma once

#include "layers/layer.h"

namespace tandem {

// Batch normalisation of [n, h, w, channels], alone or fused with what follows it.
class BatchNorm2d : public Layer {
 public:
  explicit BatchNorm2d(std::int64_t channels, double epsilon = 1e-5);

  Var forward(Tape& tape, const Var& x) override;
  Var forward_relu(Tape& tape, const Var& x) override;
  Var forward_add_relu(Tape& tape, const Var& x, const Var& residual);
  void collect(const std::string& prefix, std::vector<ParameterSet::Named>& into) override;

 private:
  BatchNorm use(Tape& tape);

  Parameter weight_, bias_, running_mean_, running_variance_;
  double epsilon_;
};

}  // namespace tandem

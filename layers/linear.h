#pragma once

#include "layers/init.h"
#include "layers/layer.h"

namespace tandem {

// x[n, in] · weight[out, in]ᵀ + bias[out]. The bias begins at zero.
class Linear : public Layer {
 public:
  Linear(std::int64_t in, std::int64_t out, Init init, const Random& random);

  Var forward(Tape& tape, const Var& x) override;
  void collect(const std::string& prefix, std::vector<ParameterSet::Named>& into) override;

 private:
  Parameter weight_, bias_;
};

}  // namespace tandem

#pragma once

#include "layers/init.h"
#include "layers/layer.h"

namespace tandem {

// x[n, in] · weight[out, in]ᵀ + bias[out]. The bias begins at zero.
class Linear : public Layer {
 public:
  struct Options {
    std::int64_t in, out;
    Init init = Init::he_normal;
    Role role = Role::trained;
    Shape image = {};  // after a flatten: the shape [h, w, c] before it
  };
  Linear(const Options& options, const Random& random);
  Linear(std::int64_t in, std::int64_t out, Init init, const Random& random)
      : Linear({.in = in, .out = out, .init = init}, random) {}

  Var forward(Tape& tape, const Var& x) override;
  Var forward_relu(Tape& tape, const Var& x) override;
  void collect(const std::string& prefix, std::vector<ParameterSet::Named>& into) override;

 private:
  Parameter weight_, bias_;
};

}  // namespace tandem

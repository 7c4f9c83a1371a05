#pragma once

#include <optional>

#include "layers/init.h"
#include "layers/layer.h"

namespace tandem {

// Filters over [n, h, w, in] images. The bias, if there is one, begins at zero.
class Conv2d : public Layer {
 public:
  struct Options {
    std::int64_t in, out;
    HeightWidth window;
    Convolution convolution = {};
    bool bias = false;
    Init init = Init::he_normal;
    Role role = Role::trained;
  };
  Conv2d(const Options& options, const Random& random);

  Var forward(Tape& tape, const Var& x) override;
  Var forward_relu(Tape& tape, const Var& x) override;
  void collect(const std::string& prefix, std::vector<ParameterSet::Named>& into) override;

 private:
  Convolution convolution_;
  Parameter weight_;
  std::optional<Parameter> bias_;
};

}  // namespace tandem

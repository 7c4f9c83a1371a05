#pragma once

#include "layers/batch_norm.h"
#include "layers/conv2d.h"

namespace tandem {

// The unit of GoogLeNet and Inception-v3: a convolution without bias, batch norm and ReLU, with the
// names and the epsilon of torchvision's BasicConv2d.
class BasicConv : public Layer {
 public:
  BasicConv(std::int64_t in, std::int64_t out, HeightWidth window, const Convolution& convolution,
            const Random& random)
      : conv_({.in = in,
               .out = out,
               .window = window,
               .convolution = convolution,
               .init = Init::he_normal_fan_out},
              random),
        norm_(out, 1e-3) {}

  Var forward(Tape& tape, const Var& x) override {
    return norm_.forward_relu(tape, conv_.forward(tape, x));
  }

  void collect(const std::string& prefix, std::vector<ParameterSet::Named>& into) override {
    conv_.collect(prefix + "conv.", into);
    norm_.collect(prefix + "bn.", into);
  }

 private:
  Conv2d conv_;
  BatchNorm2d norm_;
};

}  // namespace tandem

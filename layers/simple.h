// Layers without parameters.
#pragma once

#include "layers/layer.h"

namespace tandem {

class Relu : public Layer {
 public:
  Var forward(Tape& tape, const Var& x) override { return relu(tape, x); }
};

class Flatten : public Layer {
 public:
  Var forward(Tape& tape, const Var& x) override { return flatten(tape, x); }
};

class Dropout : public Layer {
 public:
  explicit Dropout(double drop) : drop_(drop) {}
  Var forward(Tape& tape, const Var& x) override { return dropout(tape, x, drop_); }

 private:
  double drop_;
};

}  // namespace tandem

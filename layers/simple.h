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

class MaxPool : public Layer {
 public:
  explicit MaxPool(const Pool& pool) : pool_(pool) {}
  Var forward(Tape& tape, const Var& x) override { return max_pool(tape, x, pool_); }

 private:
  Pool pool_;
};

class AveragePool : public Layer {
 public:
  explicit AveragePool(const Pool& pool) : pool_(pool) {}
  Var forward(Tape& tape, const Var& x) override { return average_pool(tape, x, pool_); }

 private:
  Pool pool_;
};

// To images of `height` x `width` pixels, from any size.
class AdaptiveAveragePool : public Layer {
 public:
  AdaptiveAveragePool(std::int64_t height, std::int64_t width) : height_(height), width_(width) {}
  Var forward(Tape& tape, const Var& x) override {
    return adaptive_average_pool(tape, x, height_, width_);
  }

 private:
  std::int64_t height_, width_;
};

// To one value per channel.
class GlobalAveragePool : public Layer {
 public:
  Var forward(Tape& tape, const Var& x) override { return global_average_pool(tape, x); }
};

class ResponseNorm : public Layer {
 public:
  explicit ResponseNorm(const LocalResponseNorm& norm) : norm_(norm) {}
  Var forward(Tape& tape, const Var& x) override { return local_response_norm(tape, x, norm_); }

 private:
  LocalResponseNorm norm_;
};

class Dropout : public Layer {
 public:
  explicit Dropout(double drop) : drop_(drop) {}
  Var forward(Tape& tape, const Var& x) override { return dropout(tape, x, drop_); }

 private:
  double drop_;
};

}  // namespace tandem

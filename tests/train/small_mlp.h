// A net and options with which many runs take little time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/random.h"
#include "layers/linear.h"
#include "layers/sequential.h"
#include "layers/simple.h"
#include "tests/train/digits.h"
#include "train/options.h"

namespace tandem::test {

// A smaller net than MNIST-MLP, of eight blocks.
inline std::unique_ptr<Layer> small_mlp(const Shape&, std::int64_t, std::uint64_t seed) {
  const Random random(seed, Purpose::weights);
  auto model = std::make_unique<Sequential>();
  model->add<Flatten>("flatten")
      .add<Linear>("0", 784, 20, Init::he_normal, random.split(0))
      .add<Relu>("1")
      .add<Linear>("2", 20, 10, Init::xavier_normal, random.split(2));
  return model;
}

inline Task small_mlp_on_digits() {
  return {.app = "test", .model = small_mlp, .data = [] { return digits(); }, .net = "Small MLP"};
}

inline TrainOptions short_run(const std::string& algo, int workers, std::int64_t iterations = 12) {
  TrainOptions o;
  o.algo = algo;
  o.workers = workers;
  o.batch = 50;
  o.iterations = iterations;
  o.threads = 1;
  o.quiet = true;
  return o;
}

}  // namespace tandem::test

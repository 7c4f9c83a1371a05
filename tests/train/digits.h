#pragma once

#include "data/dataset.h"
#include "data/synthetic.h"
#include "layers/models/models.h"
#include "train/trainer.h"

namespace tandem::test {

// A set that many short trainings share.
inline const DataSplit& digits() {
  static const DataSplit data = [] {
    const auto train = synthetic_digits(1000, 1);
    return DataSplit{train, synthetic_digits(203, 2), measure_normalisation(*train), "digits"};
  }();
  return data;
}

// MNIST-MLP on them.
inline Task mlp_on_digits() {
  return {.app = "test",
          .model = [](const Shape&, std::int64_t, std::uint64_t seed) { return mnist_mlp(seed); },
          .data = [] { return digits(); }};
}

}  // namespace tandem::test

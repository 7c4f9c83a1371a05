#pragma once

#include "data/dataset.h"
#include "data/synthetic.h"

namespace tandem::test {

// A set that many short trainings share.
inline const DataSplit& digits() {
  static const DataSplit data = [] {
    const auto train = synthetic_digits(1000, 1);
    return DataSplit{train, synthetic_digits(203, 2), measure_normalisation(*train), "digits"};
  }();
  return data;
}

}  // namespace tandem::test

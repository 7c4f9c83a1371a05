// A tensor's elements on the host, of any type, compared with the expected ones.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tensor/tensor.h"

namespace tandem::test {

inline std::vector<double> host(const Tensor& x) {
  return with_float_type(x.dtype(), [&]<class T>() {
    const auto values = x.to_host<T>();
    return std::vector<double>(values.begin(), values.end());
  });
}

inline void check_close(const Tensor& x, const std::vector<double>& expected, double tolerance) {
  const auto values = host(x);
  REQUIRE(values.size() == expected.size());
  double worst = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (const double error = std::abs(values[i] - expected[i]); !(error <= worst))
      worst = std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
  CHECK(worst <= tolerance);
}

inline double tolerance_of(Dtype dtype) { return dtype == Dtype::f64 ? 1e-12 : 1e-4; }

}  // namespace tandem::test

#include "base/statistics.h"

#include <doctest/doctest.h>

using namespace tandem;

TEST_CASE("statistics: mean and median; the median of two values is their mean") {
  CHECK(mean({}) == 0);
  CHECK(mean({1, 2, 6}) == 3);
  CHECK(median({}) == 0);
  CHECK(median({3, 1}) == 2);
  CHECK(median({5, 1, 3}) == 3);
  CHECK(median({4, 1, 3, 10}) == 3.5);
}

TEST_CASE("statistics: quantiles by nearest rank") {
  CHECK(quantile({}, 0.5) == 0);
  CHECK(quantile({3}, 0.95) == 3);
  CHECK(quantile({5, 1, 3}, 0.5) == 3);
  CHECK(quantile({4, 1, 3, 2}, 0.5) == 2);
  CHECK(quantile({4, 1, 3, 2}, 0) == 1);
  CHECK(quantile({4, 1, 3, 2}, 1) == 4);
  std::vector<double> hundred;
  for (int i = 1; i <= 100; ++i) hundred.push_back(i);
  CHECK(quantile(hundred, 0.95) == 95);
}

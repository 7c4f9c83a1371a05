#include "base/random.h"

#include <doctest/doctest.h>

#include <vector>

using namespace tandem;

TEST_CASE("random: the same numbers on every platform") {
  Random random(1);
  CHECK(random.bits() == 0xdb1e8f4b6c7e5e7eULL);
  CHECK(random.uniform() == 0x1.4d02d82fea5d6p-1);
  CHECK(random.normal() == -0x1.1589e13d1b496p+0);
  CHECK(random.split(5).bits() == 0x517b1c82e10e744cULL);
}

TEST_CASE("random: the logarithm agrees with the C library's") {
  for (double x : {1e-300, 0.1, 0.5, 0.70710678, 0.99, 1.0, 1.5, 2.0, 12345.678, 1e300})
    CHECK(portable_log(x) == doctest::Approx(std::log(x)).epsilon(1e-15));
}

TEST_CASE("random: moments of the distributions") {
  constexpr int kCount = 100'000;
  Random random(3);
  double mean = 0, variance = 0, normal_mean = 0, normal_variance = 0, fourth = 0;
  for (int i = 0; i < kCount; ++i) {
    const double u = random.uniform(), n = random.normal();
    mean += u / kCount;
    variance += (u - 0.5) * (u - 0.5) / kCount;
    normal_mean += n / kCount;
    normal_variance += n * n / kCount;
    fourth += n * n * n * n / kCount;
  }
  CHECK(mean == doctest::Approx(0.5).epsilon(0.01));
  CHECK(variance == doctest::Approx(1.0 / 12).epsilon(0.02));
  CHECK(std::abs(normal_mean) < 0.02);
  CHECK(normal_variance == doctest::Approx(1).epsilon(0.02));
  CHECK(fourth == doctest::Approx(3).epsilon(0.05));
}

TEST_CASE("random: below() reaches every value about equally often") {
  Random random(4);
  std::vector<int> seen(7);
  for (int i = 0; i < 70'000; ++i) ++seen[random.below(7)];
  for (int count : seen) CHECK(count == doctest::Approx(10'000).epsilon(0.05));
}

TEST_CASE("random: streams are independent of each other and of reading order") {
  const Random random(9);
  CHECK(random.split(1).bits_at(0) != random.split(2).bits_at(0));
  Random reader = random;
  reader.bits();
  CHECK(reader.bits() == random.bits_at(1));
}

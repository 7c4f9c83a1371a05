#include "autograd/parameter.h"

#include <doctest/doctest.h>

using namespace tandem;

TEST_CASE("parameters: views of flat buffers, aligned, padding zero") {
  Parameter a({2, 3}, {1, 2, 3, 4, 5, 6}), b({1}, {7}), c({20}, std::vector<float>(20, 8));
  const ParameterSet set({{"a", &a}, {"b", &b}, {"c", &c}}, cpu_device());
  CHECK(set.count() == 27);
  CHECK(a.offset == 0);
  CHECK(b.offset == 16);
  CHECK(c.offset == 32);
  CHECK(set.values().count() == 64);

  b.value.data<float>()[0] = 70;
  c.gradient.data<float>()[19] = 80;
  const auto values = set.values().to_host<float>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float expected = i < 6               ? static_cast<float>(i + 1)
                           : i == 16           ? 70
                           : i >= 32 && i < 52 ? 8
                                               : 0;
    CHECK(values[i] == expected);
  }
  CHECK(set.gradients().to_host<float>()[51] == 80);
  CHECK(set.momenta().to_host<float>() == std::vector<float>(64));
}

TEST_CASE("parameters: misuse is refused") {
  CHECK_THROWS_AS(Parameter({3}, {1, 2}), std::logic_error);
  Parameter a({1}, {0}), b({1}, {0});
  using Named = std::vector<ParameterSet::Named>;
  CHECK_THROWS_AS(ParameterSet(Named{{"x", &a}, {"x", &b}}, cpu_device()), std::logic_error);
  Parameter c({1}, {0});
  const ParameterSet set(Named{{"c", &c}}, cpu_device());
  CHECK_THROWS_AS(ParameterSet(Named{{"c", &c}}, cpu_device()), std::logic_error);
}

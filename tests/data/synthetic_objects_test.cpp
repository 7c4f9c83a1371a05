#include "data/synthetic.h"

#include <doctest/doctest.h>

using namespace tandem;

TEST_CASE("synthetic objects: the same seed draws the same images, classes are balanced") {
  for (const int classes : {10, 100}) {
    const auto set = synthetic_objects(300, classes, 1);
    CHECK(set->image_shape() == Shape{32, 32, 3});
    CHECK(set->classes() == classes);
    CHECK(std::ranges::equal(set->pixels(), synthetic_objects(300, classes, 1)->pixels()));
    CHECK(!std::ranges::equal(set->pixels(), synthetic_objects(300, classes, 2)->pixels()));
    std::vector<int> count(static_cast<std::size_t>(classes));
    std::vector<std::uint8_t> pixels(3072);
    for (std::int64_t i = 0; i < 300; ++i)
      ++count[static_cast<std::size_t>(set->read(i, pixels, nullptr))];
    for (const int n : count) CHECK(n == 300 / classes);
  }
  CHECK_THROWS_AS(synthetic_objects(1, 20, 1), std::logic_error);
}

TEST_CASE("synthetic imagenet: images are reproducible in any order and tinted by class") {
  const DataSplit data = synthetic_imagenet(33);
  CHECK(data.train->image_shape() == Shape{33, 33, 3});
  CHECK(data.train->classes() == 1000);
  CHECK(data.train->size() == 1'281'167);
  std::vector<std::uint8_t> one(33 * 33 * 3), two(one.size());
  const auto label = data.train->read(1'281'166, one, nullptr);
  CHECK(data.train->read(1'281'166, two, nullptr) == label);
  CHECK(one == two);
  data.train->read(0, two, nullptr);
  CHECK(one != two);
  int digits[] = {label / 100, label / 10 % 10, label % 10};
  for (std::size_t c = 0; c < 3; ++c) {
    double sum = 0;
    for (std::size_t i = c; i < one.size(); i += 3) sum += one[i];
    CHECK(sum / (33 * 33) == doctest::Approx(63.5 + 14 * digits[c]).epsilon(0.1));
  }
  CHECK_THROWS_AS(data.test->read(data.test->size(), one, nullptr), std::logic_error);
}

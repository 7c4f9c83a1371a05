#include "tensor/shape.h"

#include <doctest/doctest.h>

using namespace tandem;

TEST_CASE("shape: sizes, count and negative indices") {
  const Shape shape{2, 3, 4};
  CHECK(shape.rank() == 3);
  CHECK(shape.count() == 24);
  CHECK(shape[0] == 2);
  CHECK(shape[-1] == 4);
  CHECK(fmt::format("{}", shape) == "[2, 3, 4]");
  CHECK(shape == Shape{2, 3, 4});
  CHECK(shape != Shape{2, 3});
}

TEST_CASE("shape: a scalar has one element, an empty size none") {
  CHECK(Shape{}.count() == 1);
  CHECK(Shape{3, 0, 2}.count() == 0);
}

TEST_CASE("shape: invalid sizes are refused") {
  CHECK_THROWS_AS((Shape{2, -1}), std::logic_error);
  CHECK_THROWS_AS((Shape{1, 1, 1, 1, 1, 1, 1}), std::logic_error);
  const Shape shape{2, 3};
  CHECK_THROWS_AS(shape[2], std::logic_error);
  CHECK_THROWS_AS(shape[-3], std::logic_error);
}

#include "data/synthetic.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

using namespace tandem;

TEST_CASE("synthetic digits: the same everywhere, different by seed, balanced classes") {
  const auto set = synthetic_digits(200, 1);
  CHECK(set->size() == 200);
  CHECK(set->classes() == 10);
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const std::uint8_t pixel : set->pixels()) hash = (hash ^ pixel) * 0x100000001b3ULL;
  CHECK(hash == 0x6c0108cac49d6d89ULL);

  const auto other = synthetic_digits(200, 2);
  CHECK(!std::ranges::equal(set->pixels(), other->pixels()));
  std::vector<int> count(10);
  std::vector<std::uint8_t> pixels(784);
  for (std::int64_t i = 0; i < 200; ++i)
    ++count[static_cast<std::size_t>(set->read(i, pixels, nullptr))];
  CHECK(count == std::vector<int>(10, 20));
}

TEST_CASE("synthetic digits: every image has ink on paper") {
  const auto set = synthetic_digits(100, 3);
  for (std::size_t i = 0; i < 100; ++i) {
    int bright = 0, dark = 0;
    for (const std::uint8_t pixel : set->pixels().subspan(i * 784, 784)) {
      bright += pixel > 128;
      dark += pixel < 64;
    }
    CHECK(bright > 20);
    CHECK(dark > 400);
  }
}

TEST_CASE("normalisation: mean and deviation per channel") {
  const InMemoryDataset set({1, 2, 2}, 2, {0, 255, 51, 255, 102, 255, 51, 255}, {0, 1});
  const Normalisation n = measure_normalisation(set);
  CHECK(n.mean[0] == doctest::Approx(0.2));
  CHECK(n.deviation[0] == doctest::Approx(std::sqrt(0.02)));
  CHECK(n.mean[1] == doctest::Approx(1));
  CHECK(n.deviation[1] == 1);  // nothing varies: left as it is
}

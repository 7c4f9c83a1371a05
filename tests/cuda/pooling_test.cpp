// The GPU's pooling compared with the CPU's.
#include <array>

#include "tests/cuda/compare.h"

using namespace tandem;
using namespace tandem::test;

namespace {

const Pool kPools[] = {{3, 2, 1}, {3, 2, 0}, {2, 2, 0}, {2, 2, 1}, {3, 1, 1},
                       {5, 3, 2}, {2, 3, 0}, {1, 1, 0}, {15, 7, 7}};

Shape pooled(const Pool& pool, const Shape& x) {
  return {x[0], pool.positions(x[1]), pool.positions(x[2]), x[3]};
}

// f(sides, pool, shape of x) for the pools above and some drawn at random.
template <class F>
void each_case(F&& f) {
  struct Case {
    Pool pool;
    Shape x;
  };
  std::vector<Case> cases;
  for (Pool pool : kPools)
    for (const bool ceil_mode : {false, true})
      for (const std::int64_t channels : {1, 3, 4, 8, 12, 64}) {
        pool.ceil_mode = ceil_mode;
        cases.push_back({pool, {2, 17, 20, channels}});
      }
  Random random(5);
  const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(random.below(n)); };
  while (cases.size() < std::size(kPools) * 12 + 10) {
    Pool pool{1 + below(7), 1 + below(5), 0, below(2) == 1};
    pool.padding = below(static_cast<std::uint64_t>(pool.window / 2 + 1));
    const Shape x{1 + below(4), 1 + below(40), 1 + below(40), 1 + below(80)};
    if (pooled(pool, x).count() > 0) cases.push_back({pool, x});
  }
  for (const Precision precision : kTypes) {
    const Sides sides(precision);
    for (const auto& [pool, x] : cases) {
      CAPTURE(fmt::format("{} {} window {} stride {} padding {} ceil {}", name_of(precision), x,
                          pool.window, pool.stride, pool.padding, pool.ceil_mode));
      f(sides, pool, x);
    }
  }
}

void check_maxima(const Sides& sides, const Pool& pool, const Both& x) {
  const Shape y_shape = pooled(pool, x.cpu.shape());
  const Both y = sides.random(y_shape, 2), dy = sides.random(y_shape, 3);
  const Both winners = sides.empty(y_shape, Dtype::u8), dx = sides.random(x.cpu.shape(), 4);
  sides.run([&](Backend& b, auto of) { b.max_pool(pool, of(x), of(y), of(winners)); });
  check_equal(y);
  CHECK(winners.gpu.to_host<std::uint8_t>() == winners.cpu.to_host<std::uint8_t>());
  for (const bool accumulate : {true, false}) {
    sides.run([&](Backend& b, auto of) {
      b.max_pool_gradient(pool, of(winners), of(dy), of(dx), accumulate);
    });
    check_near(dx, tolerance_of_stored(sides.dtype));
  }
}

}  // namespace

TEST_CASE("cuda: kernel: maxima and their places and their gradient") {
  each_case([](const Sides& sides, const Pool& pool, const Shape& shape) {
    check_maxima(sides, pool, sides.random(shape, 1));
  });
}

TEST_CASE("cuda: kernel: maxima of equals and of NaN and of infinity") {
  each_case([](const Sides& sides, const Pool& pool, const Shape& shape) {
    Random random(6);
    std::vector<float> values;
    for (std::int64_t i = 0; i < shape.count(); ++i) {
      const auto drawn = random.below(60);
      values.push_back(drawn == 0   ? std::nanf("")
                       : drawn == 1 ? std::numeric_limits<float>::infinity()
                       : drawn < 30 ? -std::numeric_limits<float>::infinity()
                                    : static_cast<float>(drawn % 3));
    }
    check_maxima(sides, pool, sides.from(values, shape, sides.dtype));
  });
}

TEST_CASE("cuda: kernel: means of windows and their gradient") {
  each_case([](const Sides& sides, const Pool& drawn, const Shape& shape) {
    Pool pool = drawn;
    const Shape y_shape = pooled(pool, shape);
    const Both x = sides.random(shape, 1), y = sides.random(y_shape, 2);
    const Both dy = sides.random(y_shape, 3), dx = sides.random(shape, 4);
    // A window may have many pixels, whose sum is near 0.
    const double typical = 1.0 / static_cast<double>(pool.window);
    for (const bool count_padding : {true, false}) {
      pool.count_padding = count_padding;
      sides.run([&](Backend& b, auto of) { b.average_pool(pool, of(x), of(y)); });
      check_near(y, tolerance_of_stored(sides.dtype), typical);
      for (const bool accumulate : {true, false}) {
        sides.run([&](Backend& b, auto of) {
          b.average_pool_gradient(pool, of(dy), of(dx), accumulate);
        });
        check_near(dx, tolerance_of_stored(sides.dtype),
                   typical / static_cast<double>(pool.stride));
      }
    }
  });
}

TEST_CASE("cuda: kernel: means over any number of windows") {
  for (const Precision precision : kTypes) {
    const Sides sides(precision);
    for (const std::int64_t channels : {1, 12, 256})
      for (const auto& [h, w, p, q] : {std::array<std::int64_t, 4>{1, 1, 6, 6},
                                       {3, 5, 6, 6},
                                       {13, 7, 6, 6},
                                       {12, 6, 6, 6},
                                       {7, 9, 1, 2},
                                       {40, 33, 5, 7}}) {
        const Shape shape{3, h, w, channels}, y_shape{3, p, q, channels};
        CAPTURE(fmt::format("{} {} to {}", name_of(precision), shape, y_shape));
        const Both x = sides.random(shape, 1), y = sides.random(y_shape, 2);
        const Both dy = sides.random(y_shape, 3), dx = sides.random(shape, 4);
        const double typical = 1 / std::sqrt(static_cast<double>((h / p + 1) * (w / q + 1)));
        sides.run([&](Backend& b, auto of) { b.adaptive_average_pool(of(x), of(y)); });
        check_near(y, tolerance_of_stored(sides.dtype), typical);
        for (const bool accumulate : {true, false}) {
          sides.run([&](Backend& b, auto of) {
            b.adaptive_average_pool_gradient(of(dy), of(dx), accumulate);
          });
          check_near(dx, tolerance_of_stored(sides.dtype), typical);
        }
      }
  }
}

TEST_CASE("cuda: kernel: means of whole images") {
  std::vector<Shape> shapes = {{1, 1, 1, 1},  {3, 7, 5, 19}, {40, 8, 9, 33},  {2, 7, 7, 2048},
                               {4, 8, 8, 64}, {5, 1, 1, 12}, {2, 56, 56, 100}};
  Random random(7);
  const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(random.below(n)); };
  for (int i = 0; i < 10; ++i)
    shapes.push_back({1 + below(20), 1 + below(20), 1 + below(20), 1 + below(300)});
  for (const Precision precision : kTypes) {
    const Sides sides(precision);
    for (const Shape& shape : shapes) {
      CAPTURE(fmt::format("{} {}", name_of(precision), shape));
      const Shape y_shape{shape[0], shape[3]};
      const Both x = sides.random(shape, 1), y = sides.random(y_shape, 2);
      const Both dy = sides.random(y_shape, 3), dx = sides.random(shape, 4);
      const double pixels = static_cast<double>(shape[1] * shape[2]);
      sides.run([&](Backend& b, auto of) { b.global_average_pool(of(x), of(y)); });
      check_near(y, tolerance_of_stored(sides.dtype), 1 / std::sqrt(pixels));
      for (const bool accumulate : {true, false}) {
        sides.run([&](Backend& b, auto of) {
          b.global_average_pool_gradient(of(dy), of(dx), accumulate);
        });
        check_near(dx, tolerance_of_stored(sides.dtype));
      }
    }
  }
}

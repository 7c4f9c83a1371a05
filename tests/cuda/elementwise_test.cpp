// The GPU's copies and element-wise calls compared with the CPU's.
#include "tests/cuda/compare.h"

using namespace tandem;
using namespace tandem::test;

namespace {

const std::int64_t kCounts[] = {0, 1, 2, 3, 7, 8, 17, 64, 1023, 1024, 1025, 100'003};

std::vector<std::int64_t> counts() {
  std::vector<std::int64_t> all(std::begin(kCounts), std::end(kCounts));
  Random random(1);
  for (int i = 0; i < 10; ++i) all.push_back(static_cast<std::int64_t>(random.below(50'000)));
  return all;
}

template <class F>
void each_case(F&& f) {
  for (const Precision precision : kTypes) {
    const Sides sides(precision);
    for (const std::int64_t count : counts()) {
      CAPTURE(name_of(precision));
      CAPTURE(count);
      f(sides, Shape{count});
    }
  }
}

constexpr float kInfinity = std::numeric_limits<float>::infinity();

}  // namespace

TEST_CASE("cuda: kernel: copies to and from the host and on the GPU keep every bit") {
  each_case([](const Sides& sides, const Shape& shape) {
    const Both x = sides.random(shape, 1);
    CHECK(floats(x.gpu) == floats(x.cpu));
    CHECK(floats(x.gpu.clone()) == floats(x.cpu));
  });
  const Sides sides(Precision::fp32);
  const std::vector<std::int32_t> labels = {3, -1, 1 << 30};
  CHECK(Tensor::from(labels, {3}, sides.gpu).to_host<std::int32_t>() == labels);
  const std::vector<std::uint8_t> bytes = {1, 255, 0, 7, 9};
  CHECK(Tensor::from(bytes, {5}, sides.gpu).clone().to_host<std::uint8_t>() == bytes);
}

TEST_CASE("cuda: kernel: filling") {
  each_case([](const Sides& sides, const Shape& shape) {
    for (const double value : {0.0, 1.0, -2.5}) {
      const Both x = sides.random(shape, 1);
      sides.run([&](Backend& b, auto of) { b.fill(of(x), value); });
      check_equal(x);
    }
  });
}

TEST_CASE("cuda: kernel: rounding to bf16 and back") {
  const Sides sides(Precision::bf16);
  for (const std::int64_t count : counts()) {
    CAPTURE(count);
    std::vector<float> values;
    Random random(static_cast<std::uint64_t>(count));
    for (std::int64_t i = 0; i < count; ++i)
      values.push_back(static_cast<float>(random.normal() * std::exp(random.uniform(-40, 40))));
    // Halfway between two numbers of bf16, the largest, the smallest, and what is no number.
    const float special[] = {1.00390625F, 1.01171875F, 3.4e38F, 1e-40F, -0.0F,
                             kInfinity,   -kInfinity,  0.1F,    -1e-45F};
    for (std::size_t i = 0; i < std::size(special) && i < values.size(); ++i)
      values[values.size() - 1 - i] = special[i];
    const Tensor wide = Tensor::from(values, {count}, sides.gpu);
    const Tensor narrow = Tensor::empty({count}, Dtype::bf16, sides.gpu);
    sides.gpu.backend().cast(wide, narrow);
    for (float& value : values) value = round_to_bf16(value);
    CHECK(floats(narrow) == values);
    const Tensor copy = Tensor::empty({count}, Dtype::bf16, sides.gpu);
    sides.gpu.backend().cast(narrow, copy);
    CHECK(floats(copy) == values);
  }
  const Tensor nan = Tensor::from(std::vector<float>{std::nanf("")}, {1}, sides.gpu);
  const Tensor narrow = Tensor::empty({1}, Dtype::bf16, sides.gpu);
  sides.gpu.backend().cast(nan, narrow);
  CHECK(std::isnan(floats(narrow)[0]));
}

TEST_CASE("cuda: kernel: sums; the result may be one of the inputs") {
  each_case([](const Sides& sides, const Shape& shape) {
    const double tolerance = tolerance_of_stored(sides.dtype);
    const Both a = sides.random(shape, 1), b = sides.random(shape, 2), y = sides.random(shape, 3);
    sides.run([&](Backend& on, auto of) { on.add(of(a), of(b), of(y)); });
    check_near(y, tolerance);
    sides.run([&](Backend& on, auto of) { on.add(of(a), of(y), of(y)); });
    check_near(y, tolerance);
    sides.run([&](Backend& on, auto of) { on.add(of(a), of(b), of(a)); });
    check_near(a, tolerance);
    sides.run([&](Backend& on, auto of) { on.weighted_sum(0.3, of(a), -1.7, of(b), of(y)); });
    check_near(y, tolerance);
    sides.run([&](Backend& on, auto of) { on.weighted_sum(1, of(y), 0.1, of(a), of(y)); });
    check_near(y, tolerance);
  });
}

TEST_CASE("cuda: kernel: ReLU and its gradient") {
  each_case([](const Sides& sides, const Shape& shape) {
    const Both x = sides.random(shape, 1), dy = sides.random(shape, 2);
    const Both y = sides.random(shape, 3), dx = sides.random(shape, 4);
    sides.run([&](Backend& b, auto of) { b.relu(of(x), of(y)); });
    check_equal(y);
    sides.run([&](Backend& b, auto of) { b.relu_gradient(of(y), of(dy), of(dx), true); });
    check_near(dx, tolerance_of_stored(sides.dtype));
    sides.run([&](Backend& b, auto of) { b.relu_gradient(of(y), of(dy), of(dx), false); });
    check_equal(dx);
  });
}

TEST_CASE("cuda: kernel: ReLU does not hide NaN, forward and backward") {
  const float nan = std::nanf("");
  for (const Precision precision : kTypes) {
    const Sides sides(precision);
    const Both x =
        sides.from({nan, -1, 2, -0.0F, 0, kInfinity, -kInfinity, nan, 3}, {9}, sides.dtype);
    const Both dy = sides.from({5, 6, nan, 7, 8, 9, nan, nan, kInfinity}, {9}, sides.dtype);
    const Both y = x.clone(), dx = x.clone();
    sides.run([&](Backend& b, auto of) {
      b.relu(of(x), of(y));
      b.relu_gradient(of(y), of(dy), of(dx), false);
    });
    check_equal(y);
    check_equal(dx);
    CHECK(std::isnan(floats(y.gpu)[0]));
    CHECK(floats(dx.gpu)[0] == 5);
    CHECK(floats(dx.gpu)[6] == 0);
  }
}

TEST_CASE("cuda: kernel: dropout keeps the same elements as the CPU") {
  each_case([](const Sides& sides, const Shape& shape) {
    for (const double keep : {0.5, 0.9})
      for (const std::uint64_t stream : {0, 3}) {
        const StepRandom random{Random(5).split(static_cast<std::uint64_t>(shape[0])), stream};
        const Both x = sides.random(shape, 1), y = sides.random(shape, 2);
        sides.run([&](Backend& b, auto of) {
          b.begin_step(random.step);
          b.dropout(of(x), keep, random, of(y), false);
        });
        check_near(y, tolerance_of_stored(sides.dtype));
        const auto expected = floats(y.cpu), values = floats(y.gpu);
        bool same = true;
        for (std::size_t i = 0; i < values.size(); ++i)
          same &= (values[i] == 0) == (expected[i] == 0);
        CHECK(same);
        sides.run([&](Backend& b, auto of) { b.dropout(of(x), keep, random, of(y), true); });
        check_near(y, tolerance_of_stored(sides.dtype));
      }
  });
}

TEST_CASE("cuda: kernel: a step of SGD has the CPU's bits") {
  const Sides sides(Precision::fp32);
  const SgdStep steps[] = {{0.05, 0.9, 1e-4, false},
                           {0.05, 0.9, 1e-4, true},
                           {0.05, 0.9, 1e-4, false, true},
                           {0.05, 0.9, 1e-4, true, true},
                           {0.1, 0, 0, false}};
  for (const std::int64_t count : counts())
    for (const SgdStep& step : steps)
      for (const bool with_low : {false, true}) {
        CAPTURE(count);
        CAPTURE(step.nesterov);
        CAPTURE(step.gradient_has_momentum);
        CAPTURE(with_low);
        const Shape shape{count};
        const Both gradient = sides.random_f32(shape, 1), momentum = sides.random_f32(shape, 2);
        const Both value = sides.random_f32(shape, 3);
        const Tensor low = with_low ? Tensor::empty(shape, Dtype::bf16, sides.gpu) : Tensor();
        for (int i = 0; i < 3; ++i) {
          sides.cpu.backend().sgd(step, gradient.cpu, momentum.cpu, value.cpu, Tensor());
          sides.gpu.backend().sgd(step, gradient.gpu, momentum.gpu, value.gpu, low);
        }
        check_equal(momentum);
        check_equal(value);
        if (!with_low) continue;
        auto rounded = floats(value.cpu);
        for (float& v : rounded) v = round_to_bf16(v);
        CHECK(floats(low) == rounded);
      }
}

// Compares every operation's gradient with central differences in double precision.
#include <doctest/doctest.h>

#include "autograd/ops.h"
#include "tests/support.h"

using namespace tandem;
using namespace tandem::test;

TEST_CASE("gradient: linear") {
  for (const auto& [n, in, out] : {std::array{1, 1, 1}, std::array{4, 3, 5}, std::array{7, 16, 2}})
    check_gradients({{n, in}, {out, in}, {out}},
                    [](Tape& t, const auto& x) { return linear(t, x[0], x[1], x[2]); });
}

TEST_CASE("gradient: linear on a fixed input, with a fixed weight, with a fixed bias") {
  const Device device = cpu_device();
  const Var x{random_tensor({4, 3}, 11, Dtype::f64, device)};
  const Var w{random_tensor({5, 3}, 12, Dtype::f64, device)};
  const Var b{random_tensor({5}, 13, Dtype::f64, device)};
  check_gradients({{5, 3}, {5}}, [&](Tape& t, const auto& v) { return linear(t, x, v[0], v[1]); });
  check_gradients({{4, 3}, {5}}, [&](Tape& t, const auto& v) { return linear(t, v[0], w, v[1]); });
  check_gradients({{4, 3}, {5, 3}},
                  [&](Tape& t, const auto& v) { return linear(t, v[0], v[1], b); });
}

TEST_CASE("gradient: conv2d") {
  const Var no_bias;
  check_gradients({{2, 5, 4, 4}, {6, 3, 3, 2}, {6}}, [](Tape& t, const auto& x) {
    return conv2d(t, x[0], x[1], x[2], {.stride = 2, .padding = 1, .groups = 2});
  });
  check_gradients({{2, 6, 7, 3}, {2, 2, 2, 3}}, [&](Tape& t, const auto& x) {
    return conv2d(t, x[0], x[1], no_bias, {.dilation = 2});
  });
  check_gradients({{2, 5, 6, 3}, {4, 1, 5, 3}, {4}}, [](Tape& t, const auto& x) {
    return conv2d(t, x[0], x[1], x[2], {.padding = {0, 2}});
  });
  check_gradients({{2, 6, 5, 3}, {4, 3, 2, 3}, {4}}, [](Tape& t, const auto& x) {
    return conv2d(t, x[0], x[1], x[2], {.stride = {2, 1}, .padding = {1, 0}});
  });
  for (const std::int64_t window : {3, 5})  // enough channels for Winograd's way
    check_gradients({{1, 6, 7, 12}, {12, window, window, 12}, {12}}, [&](Tape& t, const auto& x) {
      return conv2d(t, x[0], x[1], x[2], {.padding = 1});
    });
}

TEST_CASE("gradient: conv2d refuses shapes that do not fit") {
  const Device device = cpu_device();
  const auto conv = [&](const Shape& x, const Shape& filter, const Convolution& o) {
    Tape tape;
    tape.begin(Tape::Mode::inference);
    conv2d(tape, Var{Tensor::zeros(x, Dtype::f32, device)},
           Var{Tensor::zeros(filter, Dtype::f32, device)}, Var{}, o);
  };
  CHECK_NOTHROW(conv({1, 4, 4, 4}, {2, 3, 3, 4}, {}));
  CHECK_THROWS_AS(conv({1, 4, 4, 4}, {2, 3, 3, 3}, {}), std::logic_error);
  CHECK_THROWS_AS(conv({1, 2, 4, 4}, {2, 3, 3, 4}, {}), std::logic_error);
  CHECK_THROWS_AS(conv({1, 4, 4, 4}, {3, 3, 3, 2}, {.groups = 2}), std::logic_error);
  CHECK_THROWS_AS(conv({1, 4, 4, 4}, {2, 3, 3, 4}, {.stride = 0}), std::logic_error);
  CHECK_THROWS_AS(conv({1, 4, 4, 4}, {2, 3, 3, 4}, {.stride = {1, 0}}), std::logic_error);
  CHECK_THROWS_AS(conv({1, 4, 4, 4}, {2, 3, 3, 4}, {.padding = {-1, 1}}), std::logic_error);
  CHECK_NOTHROW(conv({1, 2, 4, 4}, {2, 1, 3, 4}, {}));
  CHECK_THROWS_AS(conv({1, 2, 4, 4}, {2, 3, 1, 4}, {.padding = {0, 1}}), std::logic_error);
}

TEST_CASE("gradient: add") {
  check_gradients({{3, 4}, {3, 4}}, [](Tape& t, const auto& x) { return add(t, x[0], x[1]); });
}

TEST_CASE("gradient: concat") {
  check_gradients({{2, 3, 4, 2}, {2, 3, 4, 5}, {2, 3, 4, 1}}, [](Tape& t, const auto& x) {
    const Var y = concat(t, std::array{x[0], x[1], x[2]});
    CHECK(y.value.shape() == Shape{2, 3, 4, 8});
    return y;
  });
  // A part that is used twice, one that is used elsewhere too, and one that is fixed.
  const Var fixed{random_tensor({3, 2}, 1, Dtype::f64, cpu_device())};
  check_gradients({{3, 2}, {3, 1}}, [&](Tape& t, const auto& x) {
    const Var y = concat(t, std::array{x[0], fixed, x[1], x[0]});
    return concat(t, std::array{relu(t, x[1]), y});
  });
}

TEST_CASE("gradient: concat refuses shapes that do not fit") {
  Tape tape;
  tape.begin(Tape::Mode::inference);
  const auto zeros = [](const Shape& shape) {
    return Var{Tensor::zeros(shape, Dtype::f32, cpu_device())};
  };
  CHECK_THROWS_AS(concat(tape, {}), std::logic_error);
  CHECK_THROWS_AS(concat(tape, std::array{zeros({})}), std::logic_error);
  CHECK_THROWS_AS(concat(tape, std::array{zeros({2, 3}), zeros({3, 3})}), std::logic_error);
  CHECK_THROWS_AS(concat(tape, std::array{zeros({2, 3}), zeros({2, 1, 3})}), std::logic_error);
}

TEST_CASE("gradient: relu") {
  check_gradients({{5, 7}}, [](Tape& t, const auto& x) { return relu(t, x[0]); });
}

TEST_CASE("gradient: flatten") {
  check_gradients({{2, 3, 4, 5}}, [](Tape& t, const auto& x) {
    const Var y = flatten(t, x[0]);
    CHECK(y.value.shape() == Shape{2, 60});
    return y;
  });
}

TEST_CASE("gradient: flatten and linear take an empty batch") {
  const Device device = cpu_device();
  Tape tape;
  tape.begin(Tape::Mode::inference);
  const Var x = flatten(tape, Var{Tensor::zeros({0, 2, 3, 1}, Dtype::f32, device)});
  CHECK(x.value.shape() == Shape{0, 6});
  const Var y = linear(tape, x, Var{Tensor::zeros({4, 6}, Dtype::f32, device)},
                       Var{Tensor::zeros({4}, Dtype::f32, device)});
  CHECK(y.value.shape() == Shape{0, 4});
}

TEST_CASE("gradient: dropout") {
  check_gradients({{6, 9}}, [](Tape& t, const auto& x) { return dropout(t, x[0], 0.3); });
}

TEST_CASE("gradient: softmax cross-entropy") {
  const std::vector<std::int32_t> labels = {0, 2, 3, 1, 1};
  const Tensor y = Tensor::from(labels, {5}, cpu_device());
  for (const double smoothing : {0.0, 0.2})
    for (const std::int64_t batch : {0, 20})
      check_gradients({{5, 4}}, [&](Tape& t, const auto& x) {
        return softmax_cross_entropy(t, x[0], y, {.smoothing = smoothing, .batch = batch});
      });
  check_gradients({{5, 4}, {5, 4}}, [&](Tape& t, const auto& x) {
    return add(t, softmax_cross_entropy(t, x[0], y),
               softmax_cross_entropy(t, x[1], y, {.weight = 0.3}));
  });
}

TEST_CASE("gradient: a value used twice collects both contributions") {
  check_gradients({{4, 4}, {4}}, [](Tape& t, const auto& x) {
    const Var h = linear(t, x[0], x[0], x[1]);
    return add(t, h, relu(t, h));
  });
  check_gradients({{3, 3}}, [](Tape& t, const auto& x) {
    const Var doubled = add(t, x[0], x[0]);
    return add(t, doubled, relu(t, doubled));
  });
}

TEST_CASE("gradient: linear where the input is the weight, on several threads") {
  // Both products of backward add to one gradient; large enough to be cut into tiles.
  const auto gradient = [](int threads) {
    const Device device = cpu_device(threads);
    const auto values = random_values(300 * 300, 1);
    Parameter p({300, 300}, std::vector<float>(values.begin(), values.end()));
    const ParameterSet set({{"p", &p}}, device);
    const Tensor labels = Tensor::from(std::vector<std::int32_t>(300), {300}, device);
    Tape tape;
    tape.begin(Tape::Mode::training);
    const Var w = tape.use(p);
    const Var y = linear(tape, w, w, Var{Tensor::zeros({300}, Dtype::f32, device)});
    tape.backward(softmax_cross_entropy(tape, y, labels), set);
    return p.gradient.to_host<float>();
  };
  const auto one = gradient(1);
  for (int i = 0; i < 20; ++i) REQUIRE(gradient(3) == one);
}

TEST_CASE("gradient: contributions that share a tensor do not disturb each other") {
  // Both sides of the outer add receive the same dy; one of them then collects more.
  check_gradients({{3, 3}, {3, 3}}, [](Tape& t, const auto& x) {
    const Var a = relu(t, x[0]), b = relu(t, x[1]);
    const Var twice = add(t, a, b);
    return add(t, add(t, twice, a), relu(t, twice));
  });
}

TEST_CASE("gradient: a whole network") {
  const Tensor y = Tensor::from(std::vector<std::int32_t>{1, 0, 2}, {3}, cpu_device());
  check_gradients({{3, 2, 2, 1}, {5, 4}, {5}, {3, 5}, {3}}, [&](Tape& t, const auto& x) {
    Var h = relu(t, linear(t, flatten(t, x[0]), x[1], x[2]));
    h = dropout(t, h, 0.5);
    return softmax_cross_entropy(t, linear(t, h, x[3], x[4]), y, {.smoothing = 0.1});
  });
}

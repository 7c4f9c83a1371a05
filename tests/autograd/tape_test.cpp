#include "autograd/tape.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "autograd/ops.h"
#include "tests/support.h"

using namespace tandem;
using namespace tandem::test;

namespace {

// Writes down what the tape tells.
struct Recorder : Hooks {
  void before_use(Parameter& p) override { events.push_back("use " + p.name); }
  void on_grad_ready(Parameter& p) override {
    events.push_back("ready " + p.name);
    gradients.push_back(p.gradient.to_host<float>());
  }
  std::vector<std::string> events;
  std::vector<std::vector<float>> gradients;
};

// Two square layers, so that one of them can stand in for the other.
struct Net {
  Net() : set({{"a", &a}, {"a_bias", &a_bias}, {"b", &b}, {"b_bias", &b_bias}}, device) {
    tape.set_hooks(&hooks);
  }
  static std::vector<float> values(std::int64_t count, std::uint64_t seed) {
    const auto v = random_values(count, seed);
    return {v.begin(), v.end()};
  }
  Var apply(Parameter& weight, Parameter& bias, const Var& x) {
    const Var w = tape.use(weight), v = tape.use(bias);
    return linear(tape, x, w, v);
  }
  Var loss(const Var& y) {
    const Tensor labels = Tensor::from(std::vector<std::int32_t>{0, 1}, {2}, device);
    return softmax_cross_entropy(tape, y, labels);
  }
  // A whole step through both layers; returns the flat gradient.
  std::vector<float> step() {
    tape.begin(Tape::Mode::training);
    tape.backward(loss(apply(b, b_bias, apply(a, a_bias, input()))), set);
    return set.gradients().to_host<float>();
  }
  Var input() { return Var{random_tensor({2, 3}, 5, Dtype::f32, device)}; }

  Device device = cpu_device();
  Parameter a{{3, 3}, values(9, 1)}, a_bias{{3}, values(3, 2)};
  Parameter b{{3, 3}, values(9, 3)}, b_bias{{3}, values(3, 4)};
  ParameterSet set;
  Recorder hooks;
  Tape tape;
};

using Events = std::vector<std::string>;

}  // namespace

TEST_CASE("tape: hooks fire layer by layer, the last layer's gradients first") {
  Net net;
  net.tape.begin(Tape::Mode::training);
  const Var h = relu(net.tape, net.apply(net.a, net.a_bias, net.input()));
  const Var y = net.apply(net.b, net.b_bias, h);
  CHECK(net.hooks.events == Events{"use a", "use a_bias", "use b", "use b_bias"});
  net.hooks.events.clear();
  net.tape.backward(net.loss(y), net.set);
  CHECK(net.hooks.events == Events{"ready b_bias", "ready b", "ready a_bias", "ready a"});
}

TEST_CASE("tape: a gradient is final when its hook fires") {
  Net net;
  net.tape.begin(Tape::Mode::training);
  const Var y = net.apply(net.b, net.b_bias, net.apply(net.a, net.a_bias, net.input()));
  net.tape.backward(net.loss(y), net.set);
  const Parameter* order[] = {&net.b_bias, &net.b, &net.a_bias, &net.a};
  for (std::size_t i = 0; i < 4; ++i)
    CHECK(net.hooks.gradients[i] == order[i]->gradient.to_host<float>());
}

TEST_CASE("tape: shared weights fire once, at the end, with the sum of both uses") {
  Net net;
  net.b.value.copy_from_host(std::span<const float>(net.a.value.to_host<float>()));
  const auto gradient_of = [&](Parameter& first, Parameter& second) {
    net.tape.begin(Tape::Mode::training);
    net.hooks.events.clear();
    const Var h = net.apply(first, net.a_bias, net.input());
    const Var y = net.apply(second, net.b_bias, h);
    if (&first == &second)  // b is not used, and says so once the walk is done
      CHECK_THROWS_AS(net.tape.backward(net.loss(y), net.set), std::logic_error);
    else
      net.tape.backward(net.loss(y), net.set);
    return first.gradient.to_host<float>();
  };
  // Two separate parameters with equal values: the sum of their gradients.
  auto expected = gradient_of(net.a, net.b);
  const auto other = net.b.gradient.to_host<float>();
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += other[i];
  // One parameter in both places.
  const auto shared = gradient_of(net.a, net.a);
  for (std::size_t i = 0; i < expected.size(); ++i)
    CHECK(shared[i] == doctest::Approx(expected[i]).epsilon(1e-5));
  CHECK(net.hooks.events == Events{"use a", "use a_bias", "use a", "use b_bias", "ready b_bias",
                                   "ready a_bias", "ready a"});
}

TEST_CASE("tape: steps do not leak into each other") {
  Net net;
  const auto first = net.step();
  CHECK(net.step() == first);
  // A step that is begun and given up leaves no trace either.
  net.tape.begin(Tape::Mode::training);
  net.apply(net.a, net.a_bias, net.input());
  CHECK(net.step() == first);
}

TEST_CASE("tape: an exception in a hook leaves nothing behind") {
  Net net;
  struct Thrower : Hooks {
    void on_grad_ready(Parameter& p) override {
      if (p.name == "b") throw std::runtime_error("stop");
    }
  } thrower;
  const auto before = net.step();
  net.tape.set_hooks(&thrower);
  CHECK_THROWS_AS(net.step(), std::runtime_error);
  net.tape.set_hooks(&net.hooks);
  net.hooks.events.clear();
  CHECK(net.step() == before);
  CHECK(std::ranges::count_if(net.hooks.events, [](const std::string& event) {
          return event.starts_with("ready");
        }) == 4);
}

TEST_CASE("tape: a step has only one backward pass") {
  Net net;
  net.tape.begin(Tape::Mode::training);
  const Var loss =
      net.loss(net.apply(net.b, net.b_bias, net.apply(net.a, net.a_bias, net.input())));
  net.tape.backward(loss, net.set);
  CHECK(message_of<std::logic_error>([&] {
          net.tape.backward(loss, net.set);
        }).find("is not on the tape") != std::string::npos);
}

TEST_CASE("tape: a parameter without a gradient is an error that names it") {
  Net net;
  SUBCASE("never used") {
    net.tape.begin(Tape::Mode::training);
    const Var loss = net.loss(net.apply(net.a, net.a_bias, net.input()));
    CHECK(message_of<std::logic_error>([&] {
            net.tape.backward(loss, net.set);
          }).starts_with("parameter b received no gradient"));
  }
  SUBCASE("used, but the loss does not depend on it") {
    net.tape.begin(Tape::Mode::training);
    net.apply(net.b, net.b_bias, net.input());
    const Var loss = net.loss(net.apply(net.a, net.a_bias, net.input()));
    CHECK(message_of<std::logic_error>([&] {
            net.tape.backward(loss, net.set);
          }).starts_with("parameter b received no gradient"));
    for (const std::string& event : net.hooks.events) CHECK(event != "ready b");
  }
  SUBCASE("used in the step before, not in this one") {
    net.tape.begin(Tape::Mode::training);
    const Var y = net.apply(net.b, net.b_bias, net.apply(net.a, net.a_bias, net.input()));
    net.tape.backward(net.loss(y), net.set);
    net.tape.begin(Tape::Mode::training);
    const Var loss = net.loss(net.apply(net.a, net.a_bias, net.input()));
    CHECK_THROWS_AS(net.tape.backward(loss, net.set), std::logic_error);
  }
}

TEST_CASE("tape: inference records nothing but still announces uses") {
  Net net;
  net.tape.begin(Tape::Mode::inference);
  const Var y = net.apply(net.a, net.a_bias, net.input());
  CHECK(!y.has_gradient());
  CHECK(net.hooks.events == Events{"use a", "use a_bias"});
  CHECK_THROWS_AS(net.tape.backward(net.loss(y), net.set), std::logic_error);
}

TEST_CASE("tape: backward needs one number") {
  Net net;
  net.tape.begin(Tape::Mode::training);
  const Var y = net.apply(net.a, net.a_bias, net.input());
  CHECK_THROWS_AS(net.tape.backward(y, net.set), std::logic_error);
}

TEST_CASE("tape: a fixed parameter has a value and no gradient") {
  const Device device = cpu_device();
  Parameter fixed({3, 3}, Net::values(9, 1), Role::fixed), bias({3}, Net::values(3, 2));
  const ParameterSet set({{"fixed", &fixed}, {"bias", &bias}}, device);
  CHECK(set.gradients().count() == 16);
  Tape tape;
  tape.begin(Tape::Mode::training);
  const Var w = tape.use(fixed), b = tape.use(bias);
  const Var y = linear(tape, Var{random_tensor({2, 3}, 5, Dtype::f32, device)}, w, b);
  const Tensor labels = Tensor::from(std::vector<std::int32_t>{0, 1}, {2}, device);
  tape.backward(softmax_cross_entropy(tape, y, labels), set);
  CHECK(!fixed.gradient.defined());
}

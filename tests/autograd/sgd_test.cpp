#include "autograd/sgd.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/support.h"

using namespace tandem;
using namespace tandem::test;

namespace {

// torch.optim.SGD, one scalar at a time.
struct Reference {
  double w, v = 0;
  void step(double g, double rate, double mu, double decay, bool nesterov) {
    g += decay * w;
    v = mu * v + g;
    w -= rate * (nesterov ? g + mu * v : v);
  }
};

}  // namespace

// With a gradient that has its momentum already, only the weight decay gets some, so that the
// weights are the same.
TEST_CASE("sgd: plain, momentum, Nesterov and weight decay follow the definition") {
  struct Case {
    double momentum, decay;
    bool nesterov, gradient_has_momentum = false;
  };
  for (const Case& c :
       {Case{0, 0, false}, Case{0.9, 0, false}, Case{0.9, 0.01, false}, Case{0.9, 0.01, true},
        Case{0.9, 0.01, false, true}, Case{0.9, 0.01, true, true}}) {
    CAPTURE(c.momentum);
    CAPTURE(c.decay);
    CAPTURE(c.nesterov);
    CAPTURE(c.gradient_has_momentum);
    const auto initial = random_values(1000, 1);
    Parameter p({1000}, std::vector<float>(initial.begin(), initial.end()));
    ParameterSet set({{"p", &p}}, cpu_device(2), Dtype::f64);
    Schedule schedule;
    schedule.base = 0.1;
    schedule.kind = Schedule::Kind::step;
    schedule.step_every = 2;
    schedule.step_factor = 0.5;
    Sgd sgd(set, {.schedule = schedule,
                  .momentum = c.momentum,
                  .weight_decay = c.decay,
                  .nesterov = c.nesterov,
                  .gradient_has_momentum = c.gradient_has_momentum});

    std::vector<Reference> expected;
    for (const double w : p.value.to_host<double>()) expected.push_back({w});
    std::vector<double> velocity(1000);
    for (std::int64_t t = 1; t <= 5; ++t) {
      auto gradient = random_values(1000, static_cast<std::uint64_t>(10 + t));
      for (std::size_t i = 0; i < expected.size(); ++i) {
        expected[i].step(gradient[i], sgd.rate(t), c.momentum, c.decay, c.nesterov);
        velocity[i] = c.momentum * velocity[i] + gradient[i];
        if (c.gradient_has_momentum)
          gradient[i] = c.nesterov ? gradient[i] + c.momentum * velocity[i] : velocity[i];
      }
      p.gradient.copy_from_host(std::span<const double>(gradient));
      sgd.update(t);
    }
    const auto values = p.value.to_host<double>();
    for (std::size_t i = 0; i < expected.size(); ++i)
      REQUIRE(values[i] == doctest::Approx(expected[i].w).epsilon(1e-12));
  }
}

TEST_CASE("sgd: Nesterov without momentum is refused") {
  Parameter p({1}, {0});
  ParameterSet set({{"p", &p}}, cpu_device());
  CHECK_THROWS_AS(Sgd(set, {.nesterov = true}), std::logic_error);
}

TEST_CASE("schedule: constant, step and cosine") {
  Schedule s;
  s.base = 0.4;
  CHECK(s.rate(1) == 0.4);
  CHECK(s.rate(1'000'000) == 0.4);

  s.kind = Schedule::Kind::step;
  s.step_every = 10;
  s.step_factor = 0.5;
  CHECK(s.rate(10) == 0.4);
  CHECK(s.rate(11) == doctest::Approx(0.2));
  CHECK(s.rate(21) == doctest::Approx(0.1));

  s.kind = Schedule::Kind::cosine;
  s.iterations = 100;
  CHECK(s.rate(1) == doctest::Approx(0.4));
  CHECK(s.rate(51) == doctest::Approx(0.2));
  CHECK(s.rate(101) == doctest::Approx(0).epsilon(1e-12));
  CHECK(s.rate(500) == doctest::Approx(0).epsilon(1e-12));
}

TEST_CASE("schedule: warm-up rises linearly to the rate") {
  Schedule s;
  s.base = 1;
  s.warmup = 4;
  CHECK(s.rate(1) == 0.25);
  CHECK(s.rate(2) == 0.5);
  CHECK(s.rate(4) == 1);
  CHECK(s.rate(5) == 1);
  CHECK_THROWS_AS(s.rate(0), std::logic_error);
}

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

TEST_CASE("sgd: plain, momentum, Nesterov and weight decay follow the definition") {
  struct Case {
    double momentum, decay;
    bool nesterov;
  };
  for (const Case& c :
       {Case{0, 0, false}, Case{0.9, 0, false}, Case{0.9, 0.01, false}, Case{0.9, 0.01, true}}) {
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
                  .nesterov = c.nesterov});

    std::vector<Reference> expected;
    for (const double w : p.value.to_host<double>()) expected.push_back({w});
    for (std::int64_t t = 1; t <= 5; ++t) {
      const auto gradient = random_values(1000, static_cast<std::uint64_t>(10 + t));
      p.gradient.copy_from_host(std::span<const double>(gradient));
      sgd.update(t);
      for (std::size_t i = 0; i < expected.size(); ++i)
        expected[i].step(gradient[i], sgd.rate(t), c.momentum, c.decay, c.nesterov);
    }
    const auto values = p.value.to_host<double>();
    for (std::size_t i = 0; i < expected.size(); ++i)
      REQUIRE(values[i] == doctest::Approx(expected[i].w).epsilon(1e-12));
  }
}

TEST_CASE("sgd: a gradient that has its momentum already gets none, and the weight decay does") {
  for (const bool nesterov : {false, true}) {
    CAPTURE(nesterov);
    const auto initial = random_values(100, 1);
    Parameter p({100}, std::vector<float>(initial.begin(), initial.end()));
    ParameterSet set({{"p", &p}}, cpu_device(), Dtype::f64);
    Sgd sgd(set, {.schedule = {.base = 0.1},
                  .momentum = 0.9,
                  .weight_decay = 0.01,
                  .nesterov = nesterov,
                  .gradient_has_momentum = true});
    std::vector<Reference> expected;
    for (const double w : p.value.to_host<double>()) expected.push_back({w});
    std::vector<double> velocity(100);
    for (std::int64_t t = 1; t <= 5; ++t) {
      auto gradient = random_values(100, static_cast<std::uint64_t>(10 + t));
      for (std::size_t i = 0; i < expected.size(); ++i) {
        expected[i].step(gradient[i], 0.1, 0.9, 0.01, nesterov);
        velocity[i] = 0.9 * velocity[i] + gradient[i];
        gradient[i] = nesterov ? gradient[i] + 0.9 * velocity[i] : velocity[i];
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

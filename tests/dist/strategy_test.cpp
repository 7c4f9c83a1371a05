#include "dist/strategy.h"

#include <doctest/doctest.h>

#include "tensor/error.h"

using namespace tandem;

TEST_CASE("strategy: single applies the gradient of the step after backward") {
  Parameter p({2}, {1, 2});
  ParameterSet set({{"p", &p}}, cpu_device());
  Schedule schedule;
  schedule.base = 0.5;
  Sgd sgd(set, {.schedule = schedule});
  Spans spans;
  const auto strategy = make_strategy("single", sgd, spans);
  strategy->before_step(1);
  const std::vector<float> gradient = {1, -1};
  p.gradient.copy_from_host(std::span<const float>(gradient));
  CHECK(p.value.to_host<float>() == std::vector<float>{1, 2});
  strategy->after_backward(1);
  strategy->finish();
  CHECK(p.value.to_host<float>() == std::vector<float>{0.5, 2.5});
  CHECK(spans.seconds(SpanKind::update) > 0);
}

TEST_CASE("strategy: every offered name can be made, others are refused") {
  Parameter p({2}, {1, 2});
  ParameterSet set({{"p", &p}}, cpu_device());
  Sgd sgd(set, {});
  Spans spans;
  for (const std::string& name : strategy_names())
    CHECK(make_strategy(name, sgd, spans) != nullptr);
  CHECK_THROWS_AS(make_strategy("nonsense", sgd, spans), UserError);
}

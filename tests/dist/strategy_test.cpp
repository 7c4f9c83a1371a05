// Strategies on small parameters, without a model.
#include "dist/strategies.h"

#include <doctest/doctest.h>

#include <limits>

#include "dist/launch.h"
#include "dist/param_server/server.h"
#include "tests/dist/fake_gpu.h"
#include "tests/support.h"

using namespace tandem;
using namespace tandem::test;

namespace {

// Two parameters and what trains them.
struct Small {
  explicit Small(const Device& device = cpu_device()) : set({{"a", &a}, {"b", &b}}, device) {}

  Parameter a{{3}, {1, 2, 3}}, b{{2}, {4, 5}};
  ParameterSet set;
  Sgd sgd{set, {.schedule = {.base = 0.5}, .momentum = 0.5}};
  Spans spans;

  // A gradient that depends on rank, iteration and weights.
  void backward(std::int64_t t, int rank) {
    for (const Parameter* p : {&a, &b}) {
      const auto weights = p->value.to_host<float>();
      const auto gradient = p->gradient.span<float>();
      for (std::size_t i = 0; i < weights.size(); ++i)
        gradient[i] = 0.1F * weights[i] + 0.01F * static_cast<float>((rank + 1) * t);
    }
  }
};

StrategyContext context(Small& small, Communication& communication, const Compressor& compressor,
                        int workers, int pipe_k = 2) {
  return {.parameters = small.set,
          .optimizer = small.sgd,
          .spans = small.spans,
          .communication = &communication,
          .compressor = &compressor,
          .workers = workers,
          .options = {{"--pipe-k", pipe_k}}};
}

}  // namespace

TEST_CASE("strategy: single applies the gradient of the step after backward") {
  Parameter p({2}, {1, 2});
  ParameterSet set({{"p", &p}}, cpu_device());
  Sgd sgd(set, {.schedule = {.base = 0.5}});
  Spans spans;
  const auto strategy =
      make_strategy("single", {.parameters = set, .optimizer = sgd, .spans = spans});
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
  const auto none = make_none();
  run_on_ranks({.app = "test", .ranks = 1}, [&](Communication& communication) {
    Small small;
    const StrategyContext c = context(small, communication, *none, 1);
    for (const std::string& name : strategy_names()) CHECK(make_strategy(name, c) != nullptr);
    CHECK_THROWS_AS(make_strategy("nonsense", c), UserError);
  });
}

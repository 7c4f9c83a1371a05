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
          .communication = communication,
          .compressor = compressor,
          .workers = workers,
          .options = {{"--pipe-k", pipe_k}}};
}

}  // namespace

TEST_CASE("strategy: single applies the gradient of the step after backward") {
  const auto none = make_none();
  run_on_ranks({.app = "test"}, [&](Communication& communication) {
    Parameter p({2}, {1, 2});
    ParameterSet set({{"p", &p}}, cpu_device());
    Sgd sgd(set, {.schedule = {.base = 0.5}});
    Spans spans;
    const auto strategy = make_strategy("single", {.parameters = set,
                                                   .optimizer = sgd,
                                                   .spans = spans,
                                                   .communication = communication,
                                                   .compressor = *none});
    strategy->before_step(1);
    const std::vector<float> gradient = {1, -1};
    p.gradient.copy_from_host(std::span<const float>(gradient));
    CHECK(p.value.to_host<float>() == std::vector<float>{1, 2});
    strategy->after_backward(1);
    strategy->finish();
    CHECK(p.value.to_host<float>() == std::vector<float>{0.5, 2.5});
    CHECK(spans.seconds(SpanKind::update) > 0);
  });
}

TEST_CASE("strategy: every listed algorithm can be made, others are refused") {
  const auto none = make_none();
  run_on_ranks({.app = "test", .ranks = 1}, [&](Communication& communication) {
    Small small;
    const StrategyContext c = context(small, communication, *none, 1);
    for (const std::string& name : strategy_names()) CHECK(make_strategy(name, c) != nullptr);
    CHECK_THROWS_AS(make_strategy("nonsense", c), UserError);
  });
}

// Two workers, whose sum does not depend on the order.
TEST_CASE("strategy: local-sgd equals a one-process reference, bit for bit") {
  constexpr std::int64_t kIterations = 10, kPeriod = 4;
  const auto none = make_none();
  Small workers[2];
  std::vector<float> mean = workers[0].set.values().to_host<float>();
  for (std::int64_t t = 1; t <= kIterations; ++t) {
    for (const int rank : {0, 1}) {
      workers[rank].backward(t, rank);
      workers[rank].sgd.update(t);
    }
    if (t % kPeriod != 0 && t != kIterations) continue;
    const auto first = workers[0].set.values().span<float>(),
               second = workers[1].set.values().span<float>();
    for (std::size_t i = 0; i < mean.size(); ++i) {
      mean[i] += 0.5F * ((first[i] - mean[i]) + (second[i] - mean[i]));
      first[i] = second[i] = mean[i];
    }
  }
  run_on_ranks({.app = "test", .ranks = 2}, [&](Communication& communication) {
    const int rank = communication.transport().rank();
    Small small;
    StrategyContext c = context(small, communication, *none, 2);
    c.options = {{"--period", kPeriod}};
    const auto strategy = make_strategy("local-sgd", c);
    CHECK(strategy->gradient_scale() == GradientScale::local_batch);
    for (std::int64_t t = 1; t <= kIterations; ++t) {
      strategy->before_step(t);
      small.backward(t, rank);
      strategy->after_backward(t);
    }
    strategy->finish();
    CHECK(small.set.values().to_host<float>() == mean);
    // Between the means the workers differ; communication is that of three sums.
    CHECK(communication.transport().bytes_sent(Tag::ring) ==
          3 * static_cast<std::int64_t>(mean.size() * sizeof(float)));
  });
}

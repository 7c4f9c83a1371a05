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

TEST_CASE("strategy: what pipe-sgd has in flight can be saved, and a new one continues from it") {
  const auto compressor = make_quant8();
  const auto run = [&](int k, Device (*make_device)()) {
    run_on_ranks({.app = "test", .ranks = 3}, [&](Communication& communication) {
      const int rank = communication.transport().rank();
      const auto steps = [&](Small& small, Strategy& strategy, std::int64_t first,
                             std::int64_t last) {
        for (std::int64_t t = first; t <= last; ++t) {
          strategy.before_step(t);
          small.backward(t, rank);
          strategy.after_backward(t);
        }
      };
      const auto make = [&](Small& small) {
        return make_strategy("pipe-sgd", context(small, communication, *compressor, 3, k));
      };
      const auto weights = [](const Small& small) { return small.set.values().to_host<float>(); };
      const Device device = make_device();
      Small whole(device), first_half(device), second_half(device);
      const auto uninterrupted = make(whole);
      steps(whole, *uninterrupted, 1, 9);
      uninterrupted->finish();

      const auto before = make(first_half);
      steps(first_half, *before, 1, 4);
      auto in_flight = before->save_in_flight();
      CHECK(in_flight.size() == static_cast<std::size_t>(k));
      for (const auto& [from, to] :
           {std::pair(first_half.set.values(), second_half.set.values()),
            std::pair(first_half.set.momenta(), second_half.set.momenta())})
        Tensor(to).copy_from_host(std::span<const float>(from.to_host<float>()));
      // Saving changes nothing for the one that was saved.
      steps(first_half, *before, 5, 9);
      before->finish();
      CHECK(weights(first_half) == weights(whole));

      const auto after = make(second_half);
      after->load_in_flight(std::move(in_flight));
      steps(second_half, *after, 5, 9);
      after->finish();
      CHECK(weights(second_half) == weights(whole));
    });
  };
  for (const int k : {1, 2, 3}) {
    run(k, [] { return cpu_device(); });
    run(k, fake_gpu);
  }
}

TEST_CASE("strategy: a gradient that is not finite is reported with its rank and parameter") {
  constexpr int kWorkers = 3;
  for (const std::string& name : compressor_names())
    for (const std::string algo : {"d-sync", "ps-sync", "pipe-sgd"}) {
      const auto compressor = make_compressor(name);
      bool gpu = false;
      const auto run = [&](Communication& communication) {
        const int rank = communication.transport().rank();
        Small small(gpu && rank < kWorkers ? fake_gpu() : cpu_device());
        if (rank == kWorkers)
          return communication.call([&] {
            ParameterServer(communication.transport(), kWorkers, 1, small.set, small.sgd,
                            *compressor, small.spans)
                .serve(1, 10);
          });
        const auto strategy =
            make_strategy(algo, context(small, communication, *compressor, kWorkers));
        try {
          for (std::int64_t t = 1; t <= 10; ++t) {
            strategy->before_step(t);
            small.backward(t, rank);
            if (t == 4 && rank == 1)
              small.b.gradient.span<float>()[1] = -std::numeric_limits<float>::infinity();
            strategy->after_backward(t);
          }
          strategy->finish();
        } catch (const std::exception& e) {
          communication.stop(e.what());
          throw;
        }
      };
      for (const bool on_gpu : {false, true}) {
        gpu = on_gpu;
        CHECK(message_of<SystemError>([&] {
                run_on_ranks({.app = "test", .ranks = kWorkers + (algo == "ps-sync" ? 1 : 0)}, run);
              }) ==
              "rank 1: training diverged: the gradient of b is not finite in iteration 4; try a "
              "lower --lr");
      }
    }
}

// Local SGD: every worker trains on its own samples, independently of the others. After every H
// iterations (--period) all workers replace their weights by the mean. They communicate H times
// less often than with D-Sync, but their weights drift apart in between.
//
// The ring sums each worker's move since the last mean, not its weights. Moves are small, so
// --compress loses little. All workers add the same sum to the same mean, so they end with the same
// bits. Each worker keeps its own momenta.
#pragma once

#include "dist/gradient_sum.h"
#include "dist/strategy.h"
#include "tensor/backend.h"

namespace tandem {

class LocalSgd : public Strategy {
 public:
  explicit LocalSgd(const StrategyContext& context)
      : c_(context),
        period_(context.option("--period")),
        sum_(context),
        mean_(context.parameters.values().clone()) {}

  GradientScale gradient_scale() const override { return GradientScale::local_batch; }

  void after_backward(std::int64_t t) override {
    {
      const Spans::Scope span(c_.spans, SpanKind::update);
      c_.optimizer.update(t);
    }
    if (++since_mean_ == period_) average(t);
  }

  void finish() override {
    if (since_mean_ > 0) average(kNoIteration);
  }

  // Tests use the mean. Afterwards each worker continues with its own weights.
  void before_test() override {
    if (since_mean_ == 0) return;
    own_ = c_.parameters.values().clone();
    take_mean(kNoIteration);
  }
  void after_test() override {
    if (since_mean_ == 0) return;
    c_.parameters.device().backend().copy(own_, c_.parameters.values());
    c_.parameters.values_changed();
  }

  void visit(State& state) override {
    state("the last mean", mean_);
    state("iterations since the last mean", since_mean_);
  }

 private:
  static constexpr std::int64_t kNoIteration = 0;  // its time does not count

  void average(std::int64_t t) {
    take_mean(t);
    c_.parameters.device().backend().copy(c_.parameters.values(), mean_);
    since_mean_ = 0;
  }

  // Sets the weights to the last mean plus the mean of all workers' moves. The gradient is already
  // applied, so its memory holds the move and then the sum.
  void take_mean(std::int64_t t) {
    const Tensor &weights = c_.parameters.values(), &move = c_.parameters.gradients();
    Backend& backend = c_.parameters.device().backend();
    {
      const Spans::Scope span(c_.spans, SpanKind::update);
      backend.weighted_sum(1, weights, -1, mean_, move);
    }
    Gradient sum{t, move, backend.record_event()};
    sum_.wait_for(sum);
    const Spans::Scope span(c_.spans, SpanKind::update);
    backend.weighted_sum(1, mean_, 1.0 / c_.workers, move, weights);
    c_.parameters.values_changed();
  }

  StrategyContext c_;
  std::int64_t period_, since_mean_ = 0;
  GradientSum sum_;
  Tensor mean_, own_;
};

}  // namespace tandem

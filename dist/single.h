#pragma once

#include "dist/strategy.h"

namespace tandem {

// One worker, no communication: w[t+1] = w[t] - rate · g[t].
class Single : public Strategy {
 public:
  explicit Single(const StrategyContext& context) : c_(context) {}

  void after_backward(std::int64_t t) override {
    const Spans::Scope span(c_.spans, SpanKind::update);
    c_.optimizer.update(t);
  }

 private:
  StrategyContext c_;
};

}  // namespace tandem

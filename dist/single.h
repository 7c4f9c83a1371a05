#pragma once

#include "dist/strategy.h"

namespace tandem {

// One worker, no communication: w[t+1] = w[t] - rate · g[t].
class Single : public Strategy {
 public:
  Single(Sgd& optimizer, Spans& spans) : optimizer_(optimizer), spans_(spans) {}

  void after_backward(std::int64_t t) override {
    const Spans::Scope span(spans_, SpanKind::update);
    optimizer_.update(t);
  }

 private:
  Sgd& optimizer_;
  Spans& spans_;
};

}  // namespace tandem

// D-Sync: decentralised synchronous SGD, the paper's Fig. 1(b) and Eq. 2. After backward, the ring
// sums the gradients of all workers, and every worker makes the same update. Nothing overlaps: an
// iteration takes l_up + l_comp + l_comm.
#pragma once

#include "dist/gradient_sum.h"
#include "dist/strategy.h"
#include "tensor/backend.h"

namespace tandem {

class DSync : public Strategy {
 public:
  explicit DSync(const StrategyContext& context) : c_(context), sum_(context) {}

  void after_backward(std::int64_t t) override {
    Gradient gradient{t, c_.parameters.gradients(),
                      c_.parameters.device().backend().record_event()};
    sum_.wait_for(gradient);
    const Spans::Scope span(c_.spans, SpanKind::update);
    c_.optimizer.update(t);
  }

 private:
  StrategyContext c_;
  GradientSum sum_;
};

}  // namespace tandem

// What d-sync and pipe-sgd do with a gradient on the communication thread: check it, then sum it
// over all workers in a ring.
#pragma once

#include "dist/ring_allreduce/ring_allreduce.h"
#include "dist/strategy.h"

namespace tandem {

class GradientSum {
 public:
  explicit GradientSum(const StrategyContext& context)
      : c_(context),
        ring_(context.communication->transport(), context.workers, *context.compressor,
              context.communication->spans()) {}

  // Replaces the gradient by its sum. A job of the communication thread.
  void operator()(const Gradient& gradient);

  // The same from the compute thread, which waits for it.
  void wait_for(const Gradient& gradient);

 private:
  StrategyContext c_;
  RingAllReduce ring_;
};

}  // namespace tandem

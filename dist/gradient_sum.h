// What d-sync and pipe-sgd do with a gradient on the communication thread: check it, then sum it
// over all workers in a ring.
//
// Who may touch a gradient's memory, where it is on a GPU and work is only queued:
//   - backward writes it on the compute stream. Gradient::ready is recorded behind backward; the
//   way
//     to the host waits for it.
//   - the sum is written while the compute thread does not have the gradient; the new `ready` keeps
//     the compute stream from reading it too early.
//   - the next backward that writes it is queued behind the update that reads it, on the same
//     stream.
// The host's memory is used by one gradient at a time: begin() waits until the way back of the one
// before has read it.
#pragma once

#include <memory>

#include "dist/ring_allreduce/ring_allreduce.h"
#include "dist/strategy.h"

namespace tandem {

class GradientSum {
 public:
  explicit GradientSum(const StrategyContext& context);

  // Replaces the gradient by its sum. A job of the communication thread.
  void operator()(Gradient& gradient);

  // The same from the compute thread, which waits for it.
  void wait_for(Gradient& gradient);

 private:
  StrategyContext c_;
  RingAllReduce ring_;
  std::unique_ptr<Staging> staging_;
};

}  // namespace tandem

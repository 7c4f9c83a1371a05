// What d-sync and pipe-sgd do with a gradient: bring it to the host, check it, and sum it over all
// workers.
//
// Who may touch a gradient's memory, where it is on a GPU and work is only queued:
//   - backward writes it on the compute stream. Gradient::ready is recorded behind backward; the
//     way to the host waits for it.
//   - the sum is written while the compute thread does not have the gradient; the new `ready` keeps
//     the compute stream from reading it too early.
//   - the next backward that writes it is queued behind the update that reads it, on the same
//     stream.
// Each gradient on its way has a staging of its own. Iterations use them in turn; one begins again
// when its last gradient is finished.
#pragma once

#include <memory>
#include <vector>

#include "dist/all_reduce.h"
#include "dist/strategy.h"

namespace tandem {

class GradientSum {
 public:
  // No more than `in_flight` gradients have begun and are not summed yet.
  explicit GradientSum(const StrategyContext& context, int in_flight = 1);

  // The gradient sets out for the host, while those before it are still being summed. The compute
  // thread says so, before it gives the gradient away.
  void begin(const Gradient& gradient);
  // Replaces a gradient that has begun by its sum. A job of the communication thread.
  void operator()(Gradient& gradient);

  // Both from the compute thread, which waits for the sum.
  void wait_for(Gradient& gradient);

 private:
  Staging& staging_of(const Gradient& gradient) const;

  StrategyContext c_;
  std::unique_ptr<AllReduce> all_reduce_;
  std::vector<std::unique_ptr<Staging>> stagings_;
};

}  // namespace tandem

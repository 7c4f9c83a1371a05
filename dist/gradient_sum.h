// Brings a gradient, or a part of it, to the host, checks that it is finite, and sums it over all
// workers. All algorithms that sum gradients use it.
//
// On a GPU work is only queued. These rules order all accesses to a gradient's memory:
//   - Backward writes it on the compute stream. Gradient::ready is recorded after backward, and the
//     copy to the host waits for it.
//   - The sum is written while the communication thread owns the gradient. The compute stream waits
//     for the new `ready` before it reads the sum.
//   - The update reads the sum. The next backward that writes this memory is queued after it, on
//     the same stream.
// Each gradient in flight has its own staging. Iterations use the stagings in turn. A staging is
// used again only after its last gradient is summed.
#pragma once

#include <memory>
#include <vector>

#include "dist/all_reduce.h"
#include "dist/strategy.h"

namespace tandem {

class GradientSum {
 public:
  // For whole gradients. At most `in_flight` of them may have begun without being summed.
  explicit GradientSum(const StrategyContext& context, int in_flight = 1);
  // For this range of the flat gradient. `linear`: see AllReduce::Group.
  GradientSum(const StrategyContext& context, const BlockRange& range, bool linear,
              int in_flight = 1);

  // Starts copying the gradient to the host; earlier gradients may still be in the sum. The compute
  // thread calls this before it hands the gradient over.
  void begin(const Gradient& gradient);
  // Replaces a gradient by its sum over all workers, after begin(). A job for the communication
  // thread.
  void operator()(Gradient& gradient);

  // Both steps at once, called by the compute thread. Waits for the sum.
  void wait_for(Gradient& gradient);

 private:
  Staging& staging_of(const Gradient& gradient) const;

  StrategyContext c_;
  BlockRange range_;
  std::unique_ptr<AllReduce> all_reduce_;
  std::vector<std::unique_ptr<Staging>> stagings_;
};

}  // namespace tandem

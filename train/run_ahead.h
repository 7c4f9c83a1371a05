// The iterations that are queued on a GPU but not finished. The host queues the next iterations
// before these are done, so that the GPU never waits for the host. On a CPU an iteration is already
// done when it is added.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "base/clock.h"
#include "dist/timing/spans.h"
#include "tensor/event.h"
#include "tensor/tensor.h"

namespace tandem {

class RunAhead {
 public:
  // The references must outlive it.
  RunAhead(const Device& device, Spans& spans);

  // Call when iteration t is queued on the device. `share` is this worker's share of the batch if
  // the loss is the mean over its own samples, and 1 if the loss is divided by the global batch.
  void add(std::int64_t t, const Tensor& loss, double share);

  struct Done {
    std::int64_t iteration;
    double loss;  // this worker's part; the sum over the workers is the batch's mean
    Clock::time_point at;
  };
  // Returns the finished iterations, oldest first, each once. Waits until at most two are left on a
  // GPU; with `all`, until none is left.
  std::vector<Done> take_done(bool all);

 private:
  struct Queued {
    std::int64_t iteration;
    Tensor loss;  // on the host; valid once the iteration is done
    double share;
    EventPtr done;  // null if it is done already
  };

  Device device_, host_;
  Spans& spans_;
  std::deque<Queued> queued_;
};

}  // namespace tandem

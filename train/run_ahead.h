// The iterations that a GPU has been given and has not finished. The host gives it the next ones
// before it has done these, so that it never waits for the host. On a CPU an iteration is done
// before it gets here.
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

  // Iteration t is queued on the device, with all that it computes. `share` is this worker's share
  // of the batch if the loss is the mean over its own samples, 1 if it is divided by the global
  // batch.
  void add(std::int64_t t, const Tensor& loss, double share);

  struct Done {
    std::int64_t iteration;
    double loss;  // this worker's part: the sum over the workers is the mean over the batch
    Clock::time_point at;
  };
  // The iterations that are done, oldest first, each once. Waits until no more than two are left;
  // with `all`, until none is.
  std::vector<Done> take_done(bool all);

 private:
  struct Queued {
    std::int64_t iteration;
    Tensor loss;  // on the host, once it is done
    double share;
    EventPtr done;  // null where it is done already
  };

  Device device_, host_;
  Spans& spans_;
  std::deque<Queued> queued_;
};

}  // namespace tandem

// Forward and backward of a step, recorded once and replayed, where the device can do that
// (tensor/device_queue.h). A recording belongs to the memory that it was made with: the batch's,
// which Input keeps in its place, and the gradient's, of which Pipe-SGD has several in turn.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "autograd/tape.h"
#include "base/error.h"
#include "data/loader.h"
#include "dist/timing/spans.h"

namespace tandem {

class StepRunner {
 public:
  using Forward = std::function<Var(const Batch&)>;

  // `record`: whether to; throws UserError for hooks that need before_use(), which a replay does
  // not call. `forward` gives the loss. `hooks` hear of gradients in replays too. The references
  // must outlive the runner.
  StepRunner(bool record, Forward forward, Hooks& hooks, const ParameterSet& parameters, Tape& tape,
             Spans& spans)
      : record_(record),
        forward_(std::move(forward)),
        hooks_(hooks),
        parameters_(parameters),
        tape_(tape),
        spans_(spans) {
    if (record && hooks.needs_before_use())
      throw UserError(
          "this algorithm waits for the weights of each layer, which a recorded step cannot do; "
          "give --graphs off");
    tape.set_hooks(&hooks);
  }

  // Queues forward and backward, and returns the loss.
  Tensor run(const Batch& batch);

 private:
  struct Ready {
    Parameter* parameter;
    EventPtr event;
  };
  struct Recorded {
    Batch batch;
    Tensor gradients, loss;
    std::unique_ptr<Recording> forward, backward;
    std::vector<Ready> ready;  // in their order
  };

  Tensor run_directly(const Batch& batch);
  const Recorded& recorded(const Batch& batch);

  bool record_;
  Forward forward_;
  Hooks& hooks_;
  const ParameterSet& parameters_;
  Tape& tape_;
  Spans& spans_;
  // Some steps are run directly first: libraries choose their algorithms in them.
  int steps_ = 0;
  std::vector<Recorded> recordings_;
};

}  // namespace tandem

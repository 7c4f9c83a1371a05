// Runs a step's forward and backward passes. If the device can (tensor/device_queue.h), they are
// recorded once and then replayed. A recording is tied to the memory it used: the batch's, which
// Input keeps at one address, and the gradient's, of which Pipe-SGD rotates several.
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

  // `record`: whether to record. Throws UserError if the hooks need before_use(), which a replay
  // does not call. `forward` returns the loss. `hooks` are told of ready gradients in replays too.
  // The references must outlive the runner.
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
          "this algorithm waits for each layer's weights, which a recorded step cannot do; "
          "use --graphs off");
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
    std::vector<Ready> ready;  // in the order in which they become ready
  };

  Tensor run_directly(const Batch& batch);
  const Recorded& recorded(const Batch& batch);

  bool record_;
  Forward forward_;
  Hooks& hooks_;
  const ParameterSet& parameters_;
  Tape& tape_;
  Spans& spans_;
  // The first steps are not recorded: libraries choose their algorithms in them.
  int steps_ = 0;
  std::vector<Recorded> recordings_;
};

}  // namespace tandem

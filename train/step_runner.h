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

  // `record`: whether to record. `forward` returns the loss. The hooks are called in replays too.
  // The references must outlive the runner.
  StepRunner(bool record, Forward forward, Hooks& hooks, const ParameterSet& parameters, Tape& tape,
             Spans& spans)
      : record_(record),
        forward_(std::move(forward)),
        hooks_(hooks),
        parameters_(parameters),
        tape_(tape),
        spans_(spans) {
    tape.set_hooks(&hooks);
  }

  // Queues forward and backward, and returns the loss.
  Tensor run(const Batch& batch);

 private:
  struct Ready {
    Parameter* parameter;
    EventPtr event;
  };
  // Forward from the use of one parameter to that of another.
  struct Piece {
    std::vector<Parameter*> uses;  // before_use() is called for all of them before the replay
    std::unique_ptr<Recording> recording;
  };
  struct Recorded {
    Batch batch;
    Tensor gradients, loss;
    std::vector<Piece> forward;  // one, unless the hooks need before_use()
    std::unique_ptr<Recording> backward;
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

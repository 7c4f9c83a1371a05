// Where communication meets computation. A distributed strategy implements these two calls. They
// tell it of every parameter when its gradient can be sent at the earliest, and when its value must
// have arrived at the latest. Both run on the compute thread.
#pragma once

namespace tandem {

struct Parameter;

class Hooks {
 public:
  virtual ~Hooks() = default;

  // Forward is about to read the parameter; once per use. May block until the value has arrived. A
  // replay of a recorded step calls it, possibly earlier, if needs_before_use().
  virtual void before_use(Parameter&) {}
  virtual bool needs_before_use() const { return false; }

  // Backward has added the last contribution to the parameter's gradient. Called exactly once per
  // step, in the reverse order of first use in forward. Must not block. On a GPU the work has only
  // been queued: the gradient is complete when the event `parameter.ready` has passed, which exists
  // if wants_ready_events(). Backward does not read the parameter's value after that.
  virtual void on_grad_ready(Parameter&) {}
  virtual bool wants_ready_events() const { return false; }
};

}  // namespace tandem

// Where communication meets computation. A distributed strategy implements these two calls and
// thereby hears of every parameter at the earliest moment it can be sent, and at the latest
// moment it must be there. Both run on the compute thread.
#pragma once

namespace tandem {

struct Parameter;

class Hooks {
 public:
  virtual ~Hooks() = default;

  // Forward is about to read the parameter, once per use. May block until the value is there.
  virtual void before_use(Parameter&) {}

  // Backward has added the last contribution to the parameter's gradient; exactly once per step,
  // in the reverse order of first use in forward. Must not block. On a GPU backward has only been
  // queued; the gradient is there when the event `parameter.ready` has passed, if that was wanted.
  virtual void on_grad_ready(Parameter&) {}
  virtual bool wants_ready_events() const { return false; }
};

}  // namespace tandem

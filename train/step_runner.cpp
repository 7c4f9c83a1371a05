#include "train/step_runner.h"

#include "tensor/backend.h"

namespace tandem {
namespace {

constexpr int kDirectSteps = 2;

bool same_place(const Tensor& a, const Tensor& b) {
  return a.raw() == b.raw() && a.shape() == b.shape();
}
bool same_place(const Batch& a, const Batch& b) {
  return same_place(a.images, b.images) && same_place(a.labels, b.labels);
}

}  // namespace

Tensor StepRunner::run(const Batch& batch) {
  if (!record_ || steps_++ < kDirectSteps) return run_directly(batch);
  const Recorded& step = recorded(batch);
  {
    const Spans::Scope span(spans_, SpanKind::forward);
    step.forward->replay();
  }
  const Spans::Scope span(spans_, SpanKind::backward);
  step.backward->replay();
  for (const auto& [parameter, event] : step.ready) {
    parameter->ready = event;
    hooks_.on_grad_ready(*parameter);
  }
  return step.loss;
}

Tensor StepRunner::run_directly(const Batch& batch) {
  Var loss;
  {
    const Spans::Scope span(spans_, SpanKind::forward);
    loss = forward_(batch);
  }
  const Spans::Scope span(spans_, SpanKind::backward);
  tape_.backward(loss, parameters_);
  return loss.value;
}

// A recording keeps its tensors, so that their memory is not reused.
const StepRunner::Recorded& StepRunner::recorded(const Batch& batch) {
  for (const Recorded& r : recordings_)
    if (same_place(r.batch, batch) && same_place(r.gradients, parameters_.gradients())) return r;
  Recorded r{.batch = batch, .gradients = parameters_.gradients()};
  struct Collector : Hooks {
    Collector(Tape& of, Hooks& usual) : tape(of), hooks(usual) { tape.set_hooks(this); }
    ~Collector() override { tape.set_hooks(&hooks); }
    void on_grad_ready(Parameter& p) override { ready.push_back({&p, p.ready}); }
    bool wants_ready_events() const override { return hooks.wants_ready_events(); }
    Tape& tape;
    Hooks& hooks;
    std::vector<Ready> ready;
  } collector(tape_, hooks_);

  Backend& backend = r.gradients.backend();
  Var loss;
  r.forward = backend.record([&] { loss = forward_(batch); });
  r.backward = backend.record([&] { tape_.backward(loss, parameters_); });
  require(r.forward && r.backward, "{} cannot record", parameters_.device().name());
  r.loss = loss.value;
  r.ready = std::move(collector.ready);
  return recordings_.emplace_back(std::move(r));
}

}  // namespace tandem

#include "train/step_runner.h"

#include "tensor/backend.h"

namespace tandem {
namespace {

constexpr int kDirectSteps = 2;
constexpr std::size_t kPieces = 16;  // at most; each takes about 10 µs to launch

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
    for (const Piece& piece : step.forward) {
      for (Parameter* parameter : piece.uses) hooks_.before_use(*parameter);
      piece.recording->replay();
    }
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
    Collector(Tape& of, Hooks& usual, const ParameterSet& parameters)
        : tape(of),
          hooks(usual),
          uses_per_piece((parameters.trained().size() + kPieces - 1) / kPieces) {
      tape.set_hooks(this);
    }
    ~Collector() override { tape.set_hooks(&hooks); }
    void before_use(Parameter& p) override {
      if (!hooks.needs_before_use()) return;
      if (pieces.back().uses.size() >= uses_per_piece) {
        cut();
        pieces.emplace_back();
      }
      pieces.back().uses.push_back(&p);
    }
    void on_grad_ready(Parameter& p) override { ready.push_back({&p, p.ready}); }
    bool wants_ready_events() const override { return hooks.wants_ready_events(); }
    Tape& tape;
    Hooks& hooks;
    std::size_t uses_per_piece;
    DeviceQueue::Cut cut;
    std::vector<Piece> pieces{1};
    std::vector<Ready> ready;
  } collector(tape_, hooks_, parameters_);

  Backend& backend = r.gradients.backend();
  Var loss;
  auto forward = backend.record([&](const DeviceQueue::Cut& cut) {
    collector.cut = cut;
    loss = forward_(batch);
  });
  auto backward =
      backend.record([&](const DeviceQueue::Cut&) { tape_.backward(loss, parameters_); });
  require(!forward.empty() && !backward.empty(), "{} cannot record", parameters_.device().name());
  r.forward = std::move(collector.pieces);
  for (std::size_t i = 0; i < forward.size(); ++i) r.forward[i].recording = std::move(forward[i]);
  r.backward = std::move(backward.front());
  r.loss = loss.value;
  r.ready = std::move(collector.ready);
  return recordings_.emplace_back(std::move(r));
}

}  // namespace tandem

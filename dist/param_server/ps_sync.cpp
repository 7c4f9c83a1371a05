#include "dist/param_server/ps_sync.h"

#include "tensor/backend.h"

namespace tandem {

PsSync::PsSync(const StrategyContext& context)
    : c_(context),
      uncompressed_(make_none()),
      weights_(stage_for_servers(context, *uncompressed_)),
      shards_(context) {
  if (push_time(context.options) == PushTime::during_backward)
    during_backward_ = std::make_unique<PushDuringBackward>(context, shards_, weights_.get());
  else
    gradient_ = stage_for_servers(context, context.compressor);
}

void PsSync::before_step(std::int64_t t) {
  if (during_backward_) during_backward_->begin_step(t);
}

void PsSync::on_grad_ready(Parameter& parameter) {
  if (during_backward_) during_backward_->on_grad_ready(parameter);
}

void PsSync::after_backward(std::int64_t t) {
  if (during_backward_) {
    during_backward_->end_step();
    c_.parameters.values_changed();
    return;
  }
  Backend& backend = c_.parameters.device().backend();
  const EventPtr ready = backend.record_event();
  {
    const Spans::Scope span(c_.spans, SpanKind::wait);
    const Shards::Staged weights{*weights_, c_.parameters.values()};
    backend.wait_for(c_.communication.call([&] {
      return shards_.push(t, {*gradient_, c_.parameters.gradients()}, &weights, ready);
    }));
  }
  c_.parameters.values_changed();
}

void PsSync::keep_weights(std::int64_t) {
  if (c_.communication.transport().rank() != 0) return;
  const std::vector<float> values = c_.parameters.values().to_host<float>();
  kept_.add(c_.parameters.values().shape()).copy_from_host(std::span(values));
}

void PsSync::visit(State& state) {
  if (c_.communication.transport().rank() == 0) kept_.visit(state, c_.parameters.values().count());
}

}  // namespace tandem

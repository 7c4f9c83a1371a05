#include "dist/param_server/ps_sync.h"

#include "tensor/backend.h"

namespace tandem {

PsSync::PsSync(const StrategyContext& context)
    : c_(context),
      uncompressed_(make_none()),
      gradient_(stage_for_servers(context, context.compressor)),
      weights_(stage_for_servers(context, *uncompressed_)),
      shards_(context) {}

void PsSync::after_backward(std::int64_t t) {
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

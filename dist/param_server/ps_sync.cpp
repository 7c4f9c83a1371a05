#include "dist/param_server/ps_sync.h"

#include "dist/finite.h"
#include "dist/host_staging.h"
#include "dist/param_server/server.h"
#include "tensor/backend.h"

namespace tandem {

PsSync::PsSync(const StrategyContext& context)
    : c_(context),
      servers_(static_cast<int>(context.option("--servers"))),
      segments_(segments_for_servers(context.parameters.values().count(), servers_)),
      uncompressed_(make_none()),
      gradient_(stage(context.compressor)),
      weights_(stage(*uncompressed_)),
      exchanges_(segments_.size()) {}

std::unique_ptr<Staging> PsSync::stage(const Compressor& compressor) const {
  return make_staging(c_.parameters.device(), compressor, c_.parameters.values().count(),
                      c_.communication.spans());
}

void PsSync::after_backward(std::int64_t t) {
  Backend& backend = c_.parameters.device().backend();
  const EventPtr ready = backend.record_event();
  {
    const Spans::Scope span(c_.spans, SpanKind::wait);
    backend.wait_for(c_.communication.call([&] { return push_and_pull(t, ready); }));
  }
  c_.parameters.values_changed();
}

// A job for the communication thread. After `ready`, the compute stream no longer uses gradient and
// weights. After the returned event, the weights are new.
EventPtr PsSync::push_and_pull(std::int64_t t, const EventPtr& ready) {
  Transport& transport = c_.communication.transport();
  Spans& spans = c_.communication.spans();
  spans.set_iteration(t);
  weights_->begin(c_.parameters.values(), ready, segments_, Staging::Fill::by_host);
  gradient_->begin(c_.parameters.gradients(), ready, segments_);
  require_finite(c_.parameters, *gradient_, 0, ready, t, spans);

  const Spans::Scope span(spans, SpanKind::communicate);
  for (std::size_t segment = 0; segment < segments_.size(); ++segment) {
    Exchange& e = exchanges_[segment];
    const int server = c_.workers + static_cast<int>(segment) % servers_;
    e.pulled = transport.receive(server, Tag::pull, weights_->packed(segment).whole());
    gradient_->wait(segment);
    e.pushed = transport.send(server, Tag::push, gradient_->packed(segment).whole());
  }
  for (std::size_t segment = 0; segment < segments_.size(); ++segment) {
    Exchange& e = exchanges_[segment];
    transport.wait(e.pulled);
    weights_->put(segment, weights_->packed(segment));
    transport.wait(e.pushed);
  }
  gradient_->finish();
  return weights_->finish();
}

}  // namespace tandem

#include "dist/param_server/ps_sync.h"

#include "dist/finite.h"
#include "dist/param_server/server.h"

namespace tandem {

PsSync::PsSync(const StrategyContext& context)
    : c_(context),
      cut_(cut_for_servers(context.parameters.values().count(), context.servers)),
      exchanges_(static_cast<std::size_t>(cut_.segments())) {}

void PsSync::after_backward(std::int64_t t) {
  const Spans::Scope span(c_.spans, SpanKind::wait);
  c_.communication->call([&] { push_and_pull(t); });
}

// A job of the communication thread.
void PsSync::push_and_pull(std::int64_t t) {
  Transport& transport = c_.communication->transport();
  Spans& spans = c_.communication->spans();
  spans.set_iteration(t);
  const Spans::Scope span(spans, SpanKind::communicate);
  const std::span<const float> gradients = c_.parameters.gradients().span<float>();
  const auto weights = c_.parameters.values().span<float>();
  require_finite(c_.parameters, gradients, t);

  for (std::int64_t segment = 0; segment < cut_.segments(); ++segment) {
    Exchange& e = exchanges_[static_cast<std::size_t>(segment)];
    const int server = c_.workers + cut_.share_of_segment(segment);
    e.pulled =
        transport.receive(server, Tag::pull, std::as_writable_bytes(cut_.of(weights, segment)));
    const auto gradient = cut_.of(gradients, segment);
    if (c_.compressor->lossless()) {
      e.pushed = transport.send(server, Tag::push, std::as_bytes(gradient));
      continue;
    }
    {
      const Spans::Scope compress_span(spans, SpanKind::compress);
      e.gradient.resize(c_.compressor->bytes(std::ssize(gradient)));
      c_.compressor->compress(gradient, e.gradient);
    }
    e.pushed = transport.send(server, Tag::push, e.gradient);
  }
  for (Exchange& e : exchanges_) {
    transport.wait(e.pulled);
    transport.wait(e.pushed);
  }
}

}  // namespace tandem

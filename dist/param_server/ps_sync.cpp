#include "dist/param_server/ps_sync.h"

#include "dist/compress/packing.h"
#include "dist/finite.h"

namespace tandem {

PsSync::PsSync(const StrategyContext& context) : c_(context) {
  const std::int64_t count = c_.parameters.values().count();
  std::vector<std::vector<Segment>> segments;
  for (int server = 0; server < c_.servers; ++server)
    segments.push_back(segments_of_server(count, c_.servers, server));
  for (std::size_t i = 0; i < segments[0].size(); ++i)  // no server has more than the first
    for (int server = 0; server < c_.servers; ++server) {
      const auto& own = segments[static_cast<std::size_t>(server)];
      if (i >= own.size()) continue;
      const std::int64_t elements = count_of(own[i], count);
      Exchange exchange{.server = server_rank(c_.workers, server), .segment = own[i]};
      exchange.gradient.resize(c_.compressor->bytes(elements));
      exchange.weights.resize(static_cast<std::size_t>(elements) * sizeof(float));
      exchanges_.push_back(std::move(exchange));
    }
}

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

  for (Exchange& e : exchanges_) {
    e.pulled = transport.receive(e.server, Tag::pull, e.weights);
    {
      const Spans::Scope compress_span(spans, SpanKind::compress);
      compress_segment(*c_.compressor, e.segment, gradients, e.gradient);
    }
    e.pushed = transport.send(e.server, Tag::push, e.gradient);
  }
  const auto none = make_none();  // weights are sent as they are
  for (Exchange& e : exchanges_) {
    transport.wait(e.pulled);
    decompress_segment(*none, e.segment, e.weights, weights);
    transport.wait(e.pushed);
  }
}

}  // namespace tandem

#include "dist/param_server/shards.h"

#include <algorithm>

#include "dist/block.h"
#include "dist/finite.h"
#include "dist/host_staging.h"

namespace tandem {

std::vector<Segment> segments_for_servers(std::int64_t count, int servers) {
  const std::int64_t blocks = parts(count, kBlock), per_server = parts(blocks, servers);
  const std::int64_t most = std::clamp<std::int64_t>(per_server / 128, 4, 32);
  const std::int64_t length =
      per_server <= 8
          ? kBlock
          : kBlock * parts(blocks, servers * std::max<std::int64_t>(2, parts(per_server, most)));
  std::vector<Segment> segments;
  for (std::int64_t first = 0; first < count; first += length)
    segments.push_back({.first = first, .count = std::min(length, count - first), .step = kBlock});
  return segments;
}

std::vector<Segment> segments_of_server(std::int64_t count, int servers, int number) {
  const std::vector<Segment> all = segments_for_servers(count, servers);
  std::vector<Segment> own;
  for (auto i = static_cast<std::size_t>(number); i < all.size();
       i += static_cast<std::size_t>(servers))
    own.push_back(all[i]);
  return own;
}

Shards::Shards(const StrategyContext& context)
    : c_(context),
      servers_(static_cast<int>(context.option("--servers"))),
      segments_(segments_for_servers(context.parameters.values().count(), servers_)),
      pushed_(segments_.size()),
      pulled_(segments_.size()) {}

std::unique_ptr<Staging> stage_for_servers(const StrategyContext& c, const Compressor& compressor) {
  return make_staging(c.parameters.device(), compressor, c.parameters.values().count(),
                      c.communication.spans());
}

void Shards::cancel() {
  for (Request& request : pushed_) request.reset();
  for (Request& request : pulled_) request.reset();
}

EventPtr Shards::push(std::int64_t t, const Staged& pushed, const Staged* answer,
                      const EventPtr& ready) {
  Spans& spans = c_.communication.spans();
  spans.set_iteration(t);
  Staging& from = pushed.staging;
  from.begin(pushed.values, ready, segments_);
  require_finite(c_.parameters, from, 0, ready, t, spans);

  const Spans::Scope span(spans, SpanKind::communicate);
  if (answer) begin_pull(answer->staging, answer->values, ready);
  for (std::size_t segment = 0; segment < segments_.size(); ++segment) {
    from.wait(segment);
    pushed_[segment] =
        transport().send(server_of(segment), Tag::push, from.packed(segment).whole());
  }
  const EventPtr answered = answer ? end_pull(answer->staging) : nullptr;
  for (Request& request : pushed_) transport().wait(request);
  from.finish();
  return answered;
}

void Shards::begin_pull(Staging& to, const Tensor& values, const EventPtr& ready, Tag tag) {
  to.begin(values, ready, segments_, Staging::Fill::by_host);
  for (std::size_t segment = 0; segment < segments_.size(); ++segment)
    pulled_[segment] = transport().receive(server_of(segment), tag, to.packed(segment).whole());
}

EventPtr Shards::end_pull(Staging& to, Patience patience) {
  for (std::size_t segment = 0; segment < segments_.size(); ++segment) {
    transport().wait(pulled_[segment], patience);
    to.put(segment, to.packed(segment));
  }
  return to.finish();
}

}  // namespace tandem

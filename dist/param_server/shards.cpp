#include "dist/param_server/shards.h"

#include <algorithm>

#include "dist/block.h"
#include "dist/codecs/block_codec.h"
#include "dist/finite.h"
#include "dist/host_staging.h"

namespace tandem {

namespace {

// The server that has a segment of the flat gradient, given its place in the order of pushing.
std::size_t server_number(std::size_t segment, std::size_t segments, int servers, PushTime time) {
  const bool backwards = time == PushTime::during_backward;
  return (backwards ? segments - 1 - segment : segment) % static_cast<std::size_t>(servers);
}

}  // namespace

PushTime push_time(const StrategyOptions& given) {
  return static_cast<PushTime>(option_value(given, "--push"));
}

std::vector<Segment> segments_for_servers(std::int64_t count, int servers, PushTime time) {
  const std::int64_t blocks = parts(count, kBlock), per_server = parts(blocks, servers);
  const std::int64_t most = std::clamp<std::int64_t>(per_server / 128, 4, 32);
  const std::int64_t length =
      per_server <= 8
          ? kBlock
          : kBlock * parts(blocks, servers * std::max<std::int64_t>(2, parts(per_server, most)));
  std::vector<Segment> segments;
  for (std::int64_t first = 0; first < count; first += length)
    segments.push_back({.first = first, .count = std::min(length, count - first), .step = kBlock});
  if (time == PushTime::during_backward) std::ranges::reverse(segments);
  return segments;
}

std::vector<Segment> segments_of_server(std::int64_t count, int servers, int number,
                                        PushTime time) {
  const std::vector<Segment> all = segments_for_servers(count, servers, time);
  std::vector<Segment> own;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (server_number(i, all.size(), servers, time) == static_cast<std::size_t>(number))
      own.push_back(all[i]);
  return own;
}

Shards::Shards(const StrategyContext& context)
    : c_(context),
      servers_(static_cast<int>(context.option("--servers"))),
      time_(push_time(context.options)),
      segments_(segments_for_servers(context.parameters.values().count(), servers_, time_)),
      encoded_(context.codec ? segments_.size() : 0),
      pushed_(segments_.size()),
      pulled_(segments_.size()) {}

int Shards::server_of(std::size_t segment) const {
  return c_.workers + static_cast<int>(server_number(segment, segments_.size(), servers_, time_));
}

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
  begin_push(t);
  for (std::size_t segment = 0; segment < segments_.size(); ++segment) {
    from.wait(segment);
    push_segment(segment, from.packed(segment).whole());
  }
  const EventPtr answered = answer ? end_pull(answer->staging) : nullptr;
  end_push();
  from.finish();
  return answered;
}

void Shards::begin_push(std::int64_t t) {
  if (c_.codec) c_.codec->begin(t);
}

void Shards::push_segment(std::size_t segment, std::span<const std::byte> bytes) {
  if (c_.codec) {
    const Spans::Scope span(c_.communication.spans(), SpanKind::compress);
    BlockCodec& codec = *c_.codec->blocks();
    std::vector<std::byte>& encoded = encoded_[segment];
    encoded.resize(codec.most_bytes_of_run(segments_[segment].count));
    const std::span values(reinterpret_cast<const float*>(bytes.data()),
                           bytes.size() / sizeof(float));
    bytes = std::span(encoded).first(
        codec.encode_run(segments_[segment].first / kBlock, values, encoded.data()));
  }
  pushed_[segment] = transport().send(server_of(segment), Tag::push, bytes);
  begun_ = segment + 1;
}

void Shards::end_push() {
  for (Request& request : pushed_) transport().wait(request);
  begun_ = sent_ = 0;
}

std::vector<Request*> Shards::in_flight() {
  while (sent_ < begun_ && transport().done(pushed_[sent_])) ++sent_;
  std::vector<Request*> requests;
  for (std::size_t i = sent_; i < std::min(begun_, sent_ + std::size_t{kSendsWatched}); ++i)
    if (!transport().done(pushed_[i])) requests.push_back(&pushed_[i]);
  if (taken_ < begun_ && pulled_[taken_]) requests.push_back(&pulled_[taken_]);
  return requests;
}

void Shards::begin_pull(Staging& to, const Tensor& values, const EventPtr& ready, Tag tag) {
  to.begin(values, ready, segments_, Staging::Fill::by_host);
  taken_ = 0;
  for (std::size_t segment = 0; segment < segments_.size(); ++segment)
    pulled_[segment] = transport().receive(server_of(segment), tag, to.packed(segment).whole());
}

void Shards::take_answer(Staging& to, Patience patience) {
  transport().wait(pulled_[taken_], patience);
  to.put(taken_, to.packed(taken_));
  ++taken_;
}

void Shards::take_answers(Staging& to) {
  while (taken_ < segments_.size() && transport().done(pulled_[taken_]))
    take_answer(to, Patience::until_timeout);
}

EventPtr Shards::end_pull(Staging& to, Patience patience) {
  while (taken_ < segments_.size()) take_answer(to, patience);
  return to.finish();
}

}  // namespace tandem

#include "dist/param_server/push_server.h"

#include <algorithm>
#include <utility>

#include "dist/codecs/block_codec.h"
#include "dist/param_server/shards.h"
#include "tensor/backend.h"

namespace tandem {

PushServer::PushServer(const StrategyContext& context)
    : c_(context),
      transport_(context.communication.transport()),
      segments_(segments_of_server(
          context.parameters.values().count(), static_cast<int>(context.option("--servers")),
          transport_.rank() - context.workers, push_time(context.options))),
      peers_(static_cast<std::size_t>(context.workers)) {}

std::int64_t PushServer::next_pushing(std::int64_t iteration) const {
  while (!pushes_in(iteration)) ++iteration;
  return iteration;
}

void PushServer::serve(std::int64_t first, std::int64_t last) {
  if (first > last) return;  // nothing is trained
  std::int64_t rounds = 0;
  for (std::int64_t t = next_pushing(first); t <= last; t = next_pushing(t + 1)) ++rounds;
  for (int worker = 0; worker < c_.workers; ++worker) {
    Peer& peer = peers_[static_cast<std::size_t>(worker)];
    peer.iteration = next_pushing(first);
    peer.to_receive = rounds * std::ssize(segments_);
    receive_more(worker);
    receive_notice(worker);
  }
  const Spans::Scope span(c_.communication.spans(), SpanKind::communicate);
  for (;;) {
    std::vector<Request*> requests;
    for (Peer& peer : peers_) {
      if (!peer.receives.empty()) requests.push_back(&peer.receives.front().request);
      if (peer.noticed) requests.push_back(&peer.noticed);
    }
    if (requests.empty()) break;
    // Some transports notice only while waiting that a send is done. One that is done already would
    // end the wait at once.
    for (std::size_t i = 0; i < std::min(answers_.size(), 4 * peers_.size()); ++i)
      if (!transport_.done(answers_[i].request)) requests.push_back(&answers_[i].request);
    transport_.await_any(requests, Patience::while_others_work);
    for (int worker = 0; worker < c_.workers; ++worker) {
      take_push(worker);
      take_notice(worker, last);
    }
    drop_answers(false);
  }
  drop_answers(true);
}

void PushServer::receive_more(int worker) {
  Peer& peer = peers_[static_cast<std::size_t>(worker)];
  constexpr std::size_t kAhead = 4;  // per worker
  while (peer.to_receive > 0 && peer.receives.size() < kAhead) {
    const Segment& segment = segments_[peer.next_received];
    peer.next_received = (peer.next_received + 1) % segments_.size();
    --peer.to_receive;
    Receive& receive = peer.receives.emplace_back();
    receive.memory = std::exchange(peer.unused, {});
    receive.memory.resize(c_.codec ? c_.codec->blocks()->most_bytes_of_run(segment.count)
                                   : c_.compressor.bytes(segment.count));
    receive.request = transport_.receive_in_place(worker, Tag::push, receive.memory);
  }
}

void PushServer::receive_notice(int worker) {
  Peer& peer = peers_[static_cast<std::size_t>(worker)];
  peer.noticed =
      transport_.receive(worker, kNoticeTag, std::as_writable_bytes(std::span(&peer.notice, 1)));
}

// At most one, so that no worker is served before the others.
void PushServer::take_push(int worker) {
  Peer& peer = peers_[static_cast<std::size_t>(worker)];
  if (peer.receives.empty() || !transport_.done(peer.receives.front().request)) return;
  const bool completes = peer.segment + 1 == segments_.size();
  c_.communication.spans().set_iteration(peer.iteration);
  take({.worker = worker,
        .iteration = peer.iteration,
        .segment = segments_[peer.segment],
        .bytes = peer.receives.front().request->message(),
        .completes = completes});
  peer.unused = std::move(peer.receives.front().memory);
  peer.receives.pop_front();
  peer.segment = completes ? 0 : peer.segment + 1;
  if (completes) peer.iteration = next_pushing(peer.iteration + 1);
  receive_more(worker);
}

void PushServer::take_notice(int worker, std::int64_t last) {
  Peer& peer = peers_[static_cast<std::size_t>(worker)];
  if (!peer.noticed || !transport_.done(peer.noticed)) return;
  const Notice notice = peer.notice;
  peer.noticed.reset();
  const bool ends = notice.kind == Notice::Kind::pause && notice.clock >= last;
  if (!ends) receive_notice(worker);
  if (notice.kind == Notice::Kind::pull) asked(worker, notice.clock);
  if (notice.kind == Notice::Kind::keep) send_all_values(worker, kKeptTag);
}

Tensor PushServer::part_of(const Tensor& flat, const Segment& segment) {
  return flat.view(segment.first, {segment.count});
}

void PushServer::send_values(int worker, const Segment& segment, Tag tag) {
  Answer& answer = answers_.emplace_back(part_of(c_.parameters.values(), segment).clone());
  answer.request =
      transport_.send(worker, tag, std::span(answer.values.raw(), answer.values.bytes()));
}

void PushServer::send_all_values(int worker, Tag tag) {
  for (const Segment& segment : segments_) send_values(worker, segment, tag);
}

// Answers are sent roughly in their order. To look at all of them after each push would take longer
// than the pushes.
void PushServer::drop_answers(bool all) {
  if (all)
    for (Answer& answer : answers_) transport_.wait(answer.request, Patience::while_others_work);
  while (!answers_.empty() && transport_.done(answers_.front().request)) answers_.pop_front();
}

void PushServer::finish() {
  transport_.count_bytes(false);  // the algorithm is over
  for (int worker = 0; worker < c_.workers; ++worker) send_all_values(worker);
  drop_answers(true);
  transport_.count_bytes(true);
}

void PushServer::visit(State& state) {
  c_.parameters.visit(state);
  c_.optimizer.visit(state);
}

}  // namespace tandem

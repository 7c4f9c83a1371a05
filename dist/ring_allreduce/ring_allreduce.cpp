#include "dist/ring_allreduce/ring_allreduce.h"

#include <algorithm>

#include "dist/compress/hop.h"

namespace tandem {
namespace {

constexpr std::size_t kNone = ~std::size_t{0};

Pipelining pipelining_of(const AllReduce::Group& group, const BlockRange& range) {
  return pipelining(range, group.ranks, group.compressor.bytes(kBlock),
                    group.compressor.divides_blocks(),
                    {.bytes_in_flight = group.transport.bytes_in_flight(),
                     .latency_bytes = group.linear ? group.transport.latency_bytes() : 0});
}

void collect(const Segment& segment, const Compressor& compressor, const Pieces& pieces,
             std::span<std::byte> message) {
  segment.for_each_run(kBlock, [&](std::int64_t, std::int64_t i, std::int64_t n) {
    const std::size_t first = compressor.bytes(i);
    compressor.copy(pieces.at(first, compressor.bytes(n)), message.subspan(first));
  });
}

}  // namespace

RingAllReduce::RingAllReduce(const Group& group, const BlockRange& range)
    : AllReduce(group, range),
      left_((group.transport.rank() + group.ranks - 1) % group.ranks),
      right_((group.transport.rank() + 1) % group.ranks),
      tag_(on_channel(Tag::ring, group.channel)),
      plan_(ring_plan(group.transport.rank(), group.ranks, range, pipelining_of(group, range))),
      starts_(plan_.segments.size(), kNone),
      received_(plan_.moves.size()),
      sent_(plan_.moves.size()),
      // A buffer is in use from when its receive is posted, up to two parts before the move, until
      // the right neighbour has made its move with the message, up to one step later. With this
      // many buffers, the rank that is furthest behind always finds a free one, so there is no
      // deadlock.
      buffers_(std::min(plan_.moves.size(), 2 * plan_.part + plan_.step)) {
  for (std::size_t i = 0; i < plan_.moves.size(); ++i)
    if (plan_.moves[i].step == 0) starts_[plan_.moves[i].segment] = i;
  for (const Segment& segment : plan_.segments)
    buffer_bytes_ = std::max(buffer_bytes_, group.compressor.bytes(segment.count));
}

void RingAllReduce::run(Staging& values) {
  start(values);
  while (advance()) {
  }
}

void RingAllReduce::start(Staging& values) {
  values_ = &values;
  posted_ = next_ = drained_ = 0;
  prepare(next_);
}

// Posts receives several moves ahead, then makes the next move. At the end, waits for the sends.
bool RingAllReduce::advance() {
  if (Request& request = awaited()) {
    if (request->kind == Operation::Kind::send) return group_.transport.wait(request), true;
    if (!group_.transport.done(request)) return group_.transport.await(request), true;
  }
  if (may_post())
    begin_receive(posted_++);
  else if (next_ < plan_.moves.size())
    make(next_), prepare(++next_);
  else
    return false;
  return true;
}

bool RingAllReduce::may_post() const {
  if (posted_ == plan_.moves.size()) return false;
  const bool replaces_own = plan_.moves[posted_].step == group_.ranks;
  return posted_ < next_ + (replaces_own ? 1 : 2) * plan_.part;
}

Request& RingAllReduce::awaited() {
  if (may_post()) {
    // This receive must not overwrite memory that is still being sent: its own buffer, or this
    // rank's own values, which the complete sum replaces.
    if (posted_ >= buffers_)
      if (Request& sent = sent_[posted_ - buffers_]) return sent;
    const Move& move = plan_.moves[posted_];
    const std::size_t start = move.step == group_.ranks ? starts_[move.segment] : kNone;
    return start == kNone ? received_[posted_] : sent_[start];
  }
  if (next_ < plan_.moves.size()) {
    Request& last = received_[plan_.moves[next_].awaits];
    return group_.transport.done(last) ? received_[next_] : last;
  }
  while (drained_ + 1 < sent_.size() && !sent_[drained_]) ++drained_;
  return sent_[drained_];
}

// A partial sum may stay in the sender's memory if this rank can read it there. A complete sum is
// received in its final place if that is contiguous.
void RingAllReduce::begin_receive(std::size_t i) {
  const Move& move = plan_.moves[i];
  const Pieces own = values_->packed(move.segment);
  if (!move.receives || own.bytes == 0) return;
  Transport& transport = group_.transport;
  if (move.adds)
    received_[i] = transport.receive_in_place(left_, tag_, buffer(i, own.bytes));
  else
    received_[i] =
        transport.receive(left_, tag_, own.contiguous() ? own.whole() : buffer(i, own.bytes));
}

// Waits for this rank's own values. It does so while the move's message is in flight, because
// values in host memory are compressed only then.
void RingAllReduce::prepare(std::size_t i) {
  if (i == plan_.moves.size()) return;
  const Move& move = plan_.moves[i];
  if ((!move.receives || move.adds) && values_->packed(move.segment).bytes > 0)
    values_->wait(move.segment);
}

void RingAllReduce::make(std::size_t i) {
  const Move& move = plan_.moves[i];
  const Pieces own = values_->packed(move.segment);
  if (own.bytes == 0) return;

  std::span<std::byte> message =
      own.contiguous() && (!move.adds || move.completes) ? own.whole() : buffer(i, own.bytes);
  if (!move.receives && !own.contiguous())
    collect(plan_.segments[move.segment], group_.compressor, own, message);
  if (move.adds) {
    const Spans::Scope span(group_.spans, adding(group_.compressor.lossless()));
    add_received(group_.compressor, plan_.segments[move.segment], received_[i]->message(), own,
                 message, group_.transport.helpers());
  }
  received_[i].reset();
  if (move.sends) sent_[i] = group_.transport.send(right_, tag_, message);
  if (move.completes) values_->put(move.segment, message);
}

std::span<std::byte> RingAllReduce::buffer(std::size_t move, std::size_t bytes) {
  if (memory_.span().empty()) memory_ = group_.compressor.memory(buffers_ * buffer_bytes_);
  return memory_.span().subspan(move % buffers_ * buffer_bytes_, bytes);
}

// Cancels receives before sends. A send can last until its receiver is cancelled, so the reverse
// order could deadlock.
void RingAllReduce::give_up(Staging& values) {
  (void)values;  // no device reads the ring's buffers
  for (Request& received : received_) received.reset();
  for (Request& sent : sent_) sent.reset();
}

}  // namespace tandem

#include "dist/ring_allreduce/ring_allreduce.h"

#include <utility>

#include "dist/compress/rounding.h"

namespace tandem {
namespace {

void add(std::span<const std::byte> received, std::span<float> values) {
  const auto* __restrict in = reinterpret_cast<const float*>(received.data());
  float* __restrict out = values.data();
  for (std::size_t i = 0; i < values.size(); ++i) out[i] = in[i] + out[i];
}

}  // namespace

RingAllReduce::RingAllReduce(Transport& transport, int ranks, const Compressor& compressor,
                             Spans& spans)
    : transport_(transport),
      ranks_(ranks),
      left_((transport.rank() + ranks - 1) % ranks),
      right_((transport.rank() + 1) % ranks),
      compressor_(compressor),
      raw_(compressor.lossless()),
      spans_(spans),
      plan_(ring_plan(transport.rank(), ranks)),
      cut_(0, ranks) {}

void RingAllReduce::sum(std::span<float> values) {
  const Spans::Scope span(spans_, SpanKind::communicate);
  if (plan_.empty()) {  // alone: the sum is what others would see of it
    const Spans::Scope compress_span(spans_, SpanKind::compress);
    round_to_compressed(compressor_, values);
    return;
  }
  prepare(static_cast<std::int64_t>(values.size()));
  try {
    go_round(values);
  } catch (...) {  // whoever owns the values may end them now
    slots_.clear();
    cut_ = Cut(0, ranks_);
    throw;
  }
}

void RingAllReduce::go_round(std::span<float> values) {
  for (std::size_t i = 0; i < slots_.size(); ++i) begin_receive(0, i, values);
  for (std::size_t i = 0; i < slots_.size(); ++i) send_own(i, values);

  // What a step has received is sent in the next one, segment by segment: while one is added, the
  // next ones are on their way.
  for (std::size_t step = 0; step < plan_.size(); ++step)
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      take_in(step, i, values);
      if (step + 1 < plan_.size()) begin_receive(step + 1, i, values);
    }
}

void RingAllReduce::prepare(std::int64_t count) {
  if (count == cut_.count()) return;
  cut_ = Cut(count, ranks_);
  slots_.clear();
  slots_.resize(static_cast<std::size_t>(cut_.segments_of_share(0)));  // none is longer
  for (Slot& slot : slots_) {
    slot.receiving.resize(compressor_.bytes(cut_.longest_segment()));
    if (!raw_) slot.sending.resize(slot.receiving.size());
  }
}

// Step 0 sends what this rank has itself.
void RingAllReduce::send_own(std::size_t i, std::span<float> values) {
  const auto own = segment(plan_[0].send_share, i, values);
  if (own.empty()) return;
  Slot& slot = slots_[i];
  if (!raw_) {
    const Spans::Scope span(spans_, SpanKind::compress);
    compressor_.compress(own, packed(slot.sending, own));
  }
  slot.sent =
      transport_.send(right_, Tag::ring, raw_ ? std::as_bytes(own) : packed(slot.sending, own));
}

void RingAllReduce::begin_receive(std::size_t step, std::size_t i, std::span<float> values) {
  const auto own = segment(plan_[step].receive_share, i, values);
  if (own.empty()) return;
  Slot& slot = slots_[i];
  const bool in_place = raw_ && plan_[step].phase == RingStep::Phase::all_gather;
  slot.received = transport_.receive(
      left_, Tag::ring, in_place ? std::as_writable_bytes(own) : packed(slot.receiving, own));
}

// Waits for a segment; adds this rank's values, or puts the sum in its place; sends it on.
void RingAllReduce::take_in(std::size_t step, std::size_t i, std::span<float> values) {
  const RingStep& now = plan_[step];
  const auto own = segment(now.receive_share, i, values);
  Slot& slot = slots_[i];
  Request sending;
  if (!own.empty()) {
    const auto bytes = packed(slot.receiving, own);
    transport_.wait(slot.received);
    if (now.phase == RingStep::Phase::reduce_scatter) {
      const Spans::Scope span(spans_, SpanKind::compress);
      if (raw_) {
        add(bytes, own);
      } else {
        round_to_compressed(compressor_, own);
        compressor_.add(bytes, own, bytes);
      }
    }
    if (step + 1 < plan_.size())
      sending = transport_.send(right_, Tag::ring, raw_ ? std::as_bytes(own) : bytes);
    if (!raw_ && (now.completes || now.phase == RingStep::Phase::all_gather)) {
      const Spans::Scope span(spans_, SpanKind::compress);
      compressor_.decompress(bytes, own);
    }
  }
  transport_.wait(slot.sent);  // of the step before: its memory is free
  slot.sent = std::move(sending);
  if (!raw_) std::swap(slot.sending, slot.receiving);
}

std::span<float> RingAllReduce::segment(int share, std::size_t i, std::span<float> values) const {
  const auto number = static_cast<std::int64_t>(i);
  if (number >= cut_.segments_of_share(share)) return {};
  return cut_.of(values, cut_.segment_of_share(share, number));
}

std::span<std::byte> RingAllReduce::packed(std::vector<std::byte>& buffer,
                                           std::span<const float> segment) const {
  return std::span(buffer).first(compressor_.bytes(std::ssize(segment)));
}

}  // namespace tandem

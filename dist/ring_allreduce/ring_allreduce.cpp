#include "dist/ring_allreduce/ring_allreduce.h"

#include <algorithm>
#include <utility>

#include "dist/compress/packing.h"

namespace tandem {
namespace {

// Segments are short, so that a rank adds one while the next one is on its way, and long enough
// that the cost of a message does not matter: an eighth of a share, within 32 and 256 KB of f32.
std::int64_t segment_blocks(std::int64_t share_blocks) {
  return std::clamp<std::int64_t>(share_blocks / 8, 4, 32);
}

}  // namespace

RingAllReduce::RingAllReduce(Transport& transport, int ranks, const Compressor& compressor,
                             Spans& spans)
    : transport_(transport),
      ranks_(ranks),
      compressor_(compressor),
      spans_(spans),
      plan_(ring_plan(transport.rank(), ranks)) {}

void RingAllReduce::sum(std::span<float> values) {
  const Spans::Scope span(spans_, SpanKind::communicate);
  plan_segments(static_cast<std::int64_t>(values.size()));
  if (plan_.empty()) {  // alone: the sum is what the others would see of it
    const Spans::Scope compress_span(spans_, SpanKind::compress);
    round_to_compressed(compressor_, values);
    return;
  }
  const int left = (transport_.rank() + ranks_ - 1) % ranks_;
  const int right = (transport_.rank() + 1) % ranks_;
  const auto share = [&](int s) -> const std::vector<Segment>& {
    return segments_[static_cast<std::size_t>(s)];
  };
  const auto begin_receive = [&](std::size_t step, std::size_t i) {
    if (step >= plan_.size() || i >= share(plan_[step].receive_share).size()) return;
    Slot& slot = slots_[i];
    slot.received = transport_.receive(left, Tag::ring,
                                       packed(slot.receiving, share(plan_[step].receive_share)[i]));
  };

  // Step 0 sends what this rank has itself.
  for (std::size_t i = 0; i < slots_.size(); ++i) begin_receive(0, i);
  const auto& first = share(plan_[0].send_share);
  for (std::size_t i = 0; i < first.size(); ++i) {
    const auto bytes = packed(slots_[i].sending, first[i]);
    {
      const Spans::Scope compress_span(spans_, SpanKind::compress);
      compress_segment(compressor_, first[i], values, bytes);
    }
    slots_[i].sent = transport_.send(right, Tag::ring, bytes);
  }

  // What a step receives is sent in the next one.
  for (std::size_t s = 0; s < plan_.size(); ++s) {
    const RingStep& step = plan_[s];
    const auto& received = share(step.receive_share);
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      Slot& slot = slots_[i];
      Request sending;
      if (i < received.size()) {
        const auto bytes = packed(slot.receiving, received[i]);
        transport_.wait(slot.received);
        if (step.phase == RingStep::Phase::reduce_scatter) {
          const Spans::Scope compress_span(spans_, SpanKind::compress);
          add_own(received[i], values, bytes);
        }
        if (s + 1 < plan_.size()) sending = transport_.send(right, Tag::ring, bytes);
        if (step.phase == RingStep::Phase::all_gather || step.completes) {
          const Spans::Scope compress_span(spans_, SpanKind::compress);
          decompress_segment(compressor_, received[i], bytes, values);
        }
      }
      transport_.wait(slot.sent);
      std::swap(slot.sending, slot.receiving);
      slot.sent = std::move(sending);
      begin_receive(s + 1, i);
    }
  }
}

void RingAllReduce::plan_segments(std::int64_t count) {
  if (count == count_) return;
  count_ = count;
  segments_.clear();
  const std::int64_t blocks = segment_blocks(blocks_of(count) / ranks_);
  for (int share = 0; share < ranks_; ++share)
    segments_.push_back(segments_of_share(count, ranks_, share, blocks));
  slots_.clear();
  slots_.resize(segments_[0].size());  // no share is longer than the first
  for (Slot& slot : slots_)
    for (auto* buffer : {&slot.sending, &slot.receiving})
      buffer->resize(compressor_.bytes(blocks * kBlock));
}

std::span<std::byte> RingAllReduce::packed(std::vector<std::byte>& buffer,
                                           const Segment& segment) const {
  return std::span(buffer).first(compressor_.bytes(count_of(segment, count_)));
}

void RingAllReduce::add_own(const Segment& segment, std::span<float> values,
                            std::span<std::byte> partial) {
  for_each_block(compressor_, segment, values, partial, [&](auto block, auto bytes) {
    round_to_compressed(compressor_, block);
    compressor_.add(bytes, block, bytes);
  });
}

}  // namespace tandem

#include "dist/param_server/server.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/thread_pool.h"
#include "dist/block.h"
#include "dist/compress/hop.h"

namespace tandem {
namespace {

// The elements of a segment in a flat buffer.
template <class T>
std::span<T> of(std::span<T> flat, const Segment& segment) {
  return flat.subspan(static_cast<std::size_t>(segment.first),
                      static_cast<std::size_t>(segment.count));
}

}  // namespace

ParameterServer::ParameterServer(Transport& transport, std::vector<int> peers, int servers,
                                 ParameterSet& parameters, Sgd& optimizer,
                                 const Compressor& compressor, Spans& spans, PushTime time)
    : transport_(transport),
      peers_(std::move(peers)),
      parameters_(parameters),
      optimizer_(optimizer),
      compressor_(compressor),
      spans_(spans),
      patience_(time == PushTime::during_backward ? Patience::while_others_work
                                                  : Patience::until_timeout),
      segments_(segments_of_server(parameters.values().count(), servers,
                                   transport.rank() - (transport.size() - servers), time)) {
  slots_.resize(std::min(kSegmentsAhead, segments_.size()));
  for (Slot& slot : slots_) {
    slot.gradients.resize(peers_.size());
    slot.received.resize(peers_.size());
    slot.answered.resize(peers_.size());
  }
}

void ParameterServer::serve(std::int64_t first, std::int64_t last) {
  for (std::int64_t t = first; t <= last; ++t) {
    spans_.set_iteration(t);
    const Spans::Scope span(spans_, SpanKind::communicate);
    for (std::size_t i = 0; i < slots_.size(); ++i) begin_receive(slots_[i], segments_[i]);
    for (std::size_t i = 0; i < segments_.size(); ++i) {
      Slot& slot = slots_[i % slots_.size()];
      if (i == 0) wait_for_the_first(slot);
      for (Request& received : slot.received) transport_.await(received, patience_);
      sum(slot, segments_[i]);
      for (Request& received : slot.received) received.reset();
      update(t, segments_[i]);
      answer(slot, segments_[i]);
      if (i + slots_.size() < segments_.size()) begin_receive(slot, segments_[i + slots_.size()]);
    }
  }
  for (Slot& slot : slots_)
    for (Request& answered : slot.answered) transport_.wait(answered);
}

// Workers may compute for any length of time. Once the first gradient arrives, the stall timeout
// applies to the others, unless workers push during backward.
void ParameterServer::wait_for_the_first(Slot& slot) {
  std::vector<Request*> any;
  for (Request& received : slot.received) any.push_back(&received);
  transport_.await_any(any, Patience::while_others_work);
}

void ParameterServer::begin_receive(Slot& slot, const Segment& segment) {
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    slot.gradients[i].resize(compressor_.bytes(segment.count));
    slot.received[i] = transport_.receive_in_place(peers_[i], Tag::push, slot.gradients[i]);
  }
}

// Adds block by block in the order of a ring of the peers, with the same compression after every
// addition. So the result has the same bits as the ring's.
void ParameterServer::sum(Slot& slot, const Segment& segment) {
  const Spans::Scope span(spans_, adding(compressor_.lossless()));
  const auto values = of(parameters_.gradients().span<float>(), segment);
  std::vector<ConstPieces> gradients;
  for (const Request& received : slot.received) gradients.push_back(received->message());
  const auto sum_block = [&](std::int64_t i) {
    const auto block = values.subspan(
        static_cast<std::size_t>(i),
        std::min(static_cast<std::size_t>(kBlock), values.size() - static_cast<std::size_t>(i)));
    std::array<std::byte, kBlock * sizeof(float)> memory;
    const auto sum = std::span(memory).first(compressor_.bytes(std::ssize(block)));
    add_in_order(compressor_, gradients,
                 owner((segment.first + i) / kBlock, static_cast<int>(peers_.size())),
                 compressor_.bytes(i), std::ssize(block), sum);
    compressor_.decompress(sum, block);
  };
  run_ranges(transport_.helpers(), segment.count, kBlock,
             [&](std::int64_t begin, std::int64_t end) {
               for (std::int64_t i = begin; i < end; i += kBlock) sum_block(i);
             });
}

void ParameterServer::update(std::int64_t t, const Segment& segment) {
  const Spans::Scope span(spans_, SpanKind::update);
  optimizer_.update_part(t, segment.first, segment.count);
}

// Sends the weights without copying them. They are not updated again before all peers have them,
// because a peer pushes its next gradient only after it has all weights.
void ParameterServer::answer(Slot& slot, const Segment& segment) {
  for (Request& answered : slot.answered) transport_.wait(answered);  // of an earlier segment
  const auto weights = std::as_bytes(of(parameters_.values().span<float>(), segment));
  for (std::size_t i = 0; i < peers_.size(); ++i)
    slot.answered[i] = transport_.send(peers_[i], Tag::pull, weights);
}

// Covers all weights and momenta, although the server never reads those in other servers' segments.
void ParameterServer::visit(State& state) {
  parameters_.visit(state);
  optimizer_.visit(state);
}

}  // namespace tandem

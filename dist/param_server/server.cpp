#include "dist/param_server/server.h"

#include <algorithm>

#include "dist/compress/packing.h"

namespace tandem {
namespace {

constexpr std::size_t kSegmentsAhead = 4;

}  // namespace

ParameterServer::ParameterServer(Transport& transport, int workers, int servers,
                                 ParameterSet& parameters, Sgd& optimizer,
                                 const Compressor& compressor, Spans& spans)
    : transport_(transport),
      workers_(workers),
      parameters_(parameters),
      optimizer_(optimizer),
      compressor_(compressor),
      spans_(spans),
      count_(parameters.values().count()),
      segments_(segments_of_server(count_, servers, transport.rank() - workers)),
      slots_(std::min(kSegmentsAhead, segments_.size())) {
  for (Slot& slot : slots_) {
    slot.gradients.resize(static_cast<std::size_t>(workers));
    slot.received.resize(static_cast<std::size_t>(workers));
    slot.answered.resize(static_cast<std::size_t>(workers));
  }
}

void ParameterServer::serve(std::int64_t first, std::int64_t last) {
  for (std::int64_t t = first; t <= last; ++t) {
    spans_.set_iteration(t);
    const Spans::Scope span(spans_, SpanKind::communicate);
    for (std::size_t i = 0; i < slots_.size(); ++i) begin_receive(slots_[i], segments_[i]);
    for (std::size_t i = 0; i < segments_.size(); ++i) {
      Slot& slot = slots_[i % slots_.size()];
      for (Request& received : slot.received) transport_.wait(received);
      sum(slot, segments_[i]);
      update(t, segments_[i]);
      answer(slot, segments_[i]);
      if (i + slots_.size() < segments_.size()) begin_receive(slot, segments_[i + slots_.size()]);
    }
  }
  for (Slot& slot : slots_)
    for (Request& answered : slot.answered) transport_.wait(answered);
}

void ParameterServer::begin_receive(Slot& slot, const Segment& segment) {
  for (int worker = 0; worker < workers_; ++worker) {
    const auto w = static_cast<std::size_t>(worker);
    slot.gradients[w].resize(compressor_.bytes(count_of(segment, count_)));
    slot.received[w] = transport_.receive(worker, Tag::push, slot.gradients[w]);
  }
}

// Block by block in the order in which a ring would add, with the compression that it would apply
// in between: the result has the same bits.
void ParameterServer::sum(Slot& slot, const Segment& segment) {
  const Spans::Scope span(spans_, SpanKind::compress);
  const auto flat = parameters_.gradients().span<float>();
  const std::size_t stride = compressor_.bytes(kBlock);
  for (std::int64_t i = 0; i < segment.blocks; ++i) {
    const std::int64_t b = segment.block(i);
    const auto block = block_of(flat, b);
    const auto gradient = [&](int position) {
      return std::span(slot.gradients[static_cast<std::size_t>(rank_at(position, b, workers_))])
          .subspan(static_cast<std::size_t>(i) * stride,
                   compressor_.bytes(static_cast<std::int64_t>(block.size())));
    };
    const std::span<std::byte> partial = gradient(0);
    for (int position = 1; position < workers_; ++position) {
      compressor_.decompress(gradient(position), block);
      compressor_.add(partial, block, partial);
    }
    compressor_.decompress(partial, block);
  }
}

void ParameterServer::update(std::int64_t t, const Segment& segment) {
  const Spans::Scope span(spans_, SpanKind::update);
  for (std::int64_t i = 0; i < segment.blocks; ++i) {
    const std::int64_t first = segment.block(i) * kBlock;
    optimizer_.update_part(t, first, std::min(kBlock, count_ - first));
  }
}

void ParameterServer::answer(Slot& slot, const Segment& segment) {
  for (Request& answered : slot.answered) transport_.wait(answered);  // of the segment before
  const auto none = make_none();
  slot.weights.resize(none->bytes(count_of(segment, count_)));
  compress_segment(*none, segment, parameters_.values().span<float>(), slot.weights);
  for (int worker = 0; worker < workers_; ++worker)
    slot.answered[static_cast<std::size_t>(worker)] =
        transport_.send(worker, Tag::pull, slot.weights);
}

}  // namespace tandem

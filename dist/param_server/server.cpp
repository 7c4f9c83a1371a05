#include "dist/param_server/server.h"

#include <algorithm>
#include <array>

#include "base/thread_pool.h"

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
      cut_(cut_for_servers(parameters.values().count(), servers)),
      ring_(parameters.values().count(), workers) {
  const int server = transport.rank() - workers;
  for (std::int64_t i = 0; i < cut_.segments_of_share(server); ++i)
    segments_.push_back(cut_.segment_of_share(server, i));
  slots_.resize(std::min(kSegmentsAhead, segments_.size()));
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
      if (i == 0) wait_for_the_first(slot);
      for (Request& received : slot.received) transport_.await(received);
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

// Workers compute as long as they must. From the first that is ready on, the others are expected.
void ParameterServer::wait_for_the_first(Slot& slot) {
  std::vector<Request*> any;
  for (Request& received : slot.received) any.push_back(&received);
  transport_.await_any(any, Patience::while_others_work);
}

void ParameterServer::begin_receive(Slot& slot, std::int64_t segment) {
  const auto gradient = cut_.of(parameters_.gradients().span<float>(), segment);
  for (int worker = 0; worker < workers_; ++worker) {
    const auto w = static_cast<std::size_t>(worker);
    slot.gradients[w].resize(compressor_.bytes(std::ssize(gradient)));
    slot.received[w] = transport_.receive_in_place(worker, Tag::push, slot.gradients[w]);
  }
}

// Block by block in the order in which a ring of the workers would add, with the compression that
// it would apply in between: the result has the same bits.
void ParameterServer::sum(Slot& slot, std::int64_t segment) {
  const Spans::Scope span(spans_, adding(compressor_.lossless()));
  const auto all = parameters_.gradients().span<float>();
  const auto values = cut_.of(all, segment);
  const std::size_t stride = compressor_.bytes(kBlock);
  const auto sum_block = [&](std::size_t first) {
    const auto block = values.subspan(first, std::min<std::size_t>(kBlock, values.size() - first));
    const int owner = ring_.share_of_element(block.data() - all.data());
    const std::size_t bytes = compressor_.bytes(std::ssize(block));
    const auto gradient = [&](int hops) {  // of the rank so many hops behind the owner
      const auto worker = static_cast<std::size_t>((owner + hops) % workers_);
      return slot.received[worker]->message().subspan(first / kBlock * stride, bytes);
    };
    std::array<std::byte, kBlock * sizeof(float)> memory;
    const std::span<std::byte> partial = std::span(memory).first(bytes);
    std::ranges::copy(gradient(1), partial.begin());
    for (int hops = 2; hops <= workers_; ++hops) {
      compressor_.decompress(gradient(hops), block);
      compressor_.add(partial, block, partial);
    }
    compressor_.decompress(partial, block);
  };
  run_ranges(transport_.helpers(), std::ssize(values), kBlock,
             [&](std::int64_t begin, std::int64_t end) {
               for (std::int64_t i = begin; i < end; i += kBlock)
                 sum_block(static_cast<std::size_t>(i));
             });
}

void ParameterServer::update(std::int64_t t, std::int64_t segment) {
  const Spans::Scope span(spans_, SpanKind::update);
  const auto all = parameters_.gradients().span<float>();
  const auto values = cut_.of(all, segment);
  optimizer_.update_part(t, values.data() - all.data(), std::ssize(values));
}

// The weights are sent from their place. They are not updated again before all workers have them,
// because a worker pushes its next gradient only then.
void ParameterServer::answer(Slot& slot, std::int64_t segment) {
  for (Request& answered : slot.answered) transport_.wait(answered);  // of an earlier segment
  const auto weights = std::as_bytes(cut_.of(parameters_.values().span<float>(), segment));
  for (int worker = 0; worker < workers_; ++worker)
    slot.answered[static_cast<std::size_t>(worker)] = transport_.send(worker, Tag::pull, weights);
}

// All weights and momenta: those of other servers' segments are never read.
void ParameterServer::visit(State& state) {
  parameters_.visit(state);
  optimizer_.visit(state);
}

}  // namespace tandem

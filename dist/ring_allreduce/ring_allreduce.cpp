#include "dist/ring_allreduce/ring_allreduce.h"

#include <algorithm>
#include <utility>

#include "dist/compress/hop.h"

namespace tandem {
RingAllReduce::RingAllReduce(Transport& transport, int ranks, const Compressor& compressor,
                             Spans& spans)
    : transport_(transport),
      ranks_(ranks),
      left_((transport.rank() + ranks - 1) % ranks),
      right_((transport.rank() + 1) % ranks),
      compressor_(compressor),
      spans_(spans),
      host_(compressor, spans),
      plan_(ring_plan(transport.rank(), ranks)),
      cut_(0, ranks),
      segments_{.length = cut_.segment_length()},
      loans_(plan_.size()) {}

const Segments& RingAllReduce::segments(std::int64_t count) {
  if (count == cut_.count()) return segments_;
  cut_ = Cut(count, ranks_);
  const std::size_t bytes = std::max<std::size_t>(1, compressor_.bytes(cut_.longest_segment()));
  parts_ = ring_parts(static_cast<std::size_t>(cut_.segments_of_share(0)),  // no share has more
                      std::max<std::size_t>(1, transport_.bytes_in_flight() / bytes));
  for (std::size_t p = 0; p < slots_.size(); ++p) {
    slots_[p].clear();
    slots_[p].resize(p < parts_.size() ? parts_[p].size : 0);
    for (Slot& slot : slots_[p]) {
      slot.partial.resize(bytes);
      slot.sent.resize(static_cast<std::size_t>(ranks_));
    }
  }

  // Of the share that it sends first this rank needs its own values first, then of those that it
  // receives: all shares, backwards round the ring, and last the one that it owns.
  segments_ = {.length = cut_.segment_length()};
  for (const RingPart& part : parts_)
    for (int back = 1; back <= ranks_; ++back)
      for (std::size_t k = 0; k < part.size; ++k)
        if (const auto own = segment((transport_.rank() + ranks_ - back) % ranks_, part.first + k))
          segments_.order.push_back(*own);
  return segments_;
}

void RingAllReduce::sum(std::span<float> values) {
  host_.begin(values, segments(std::ssize(values)).length);
  sum(host_);
  host_.finish();
}

void RingAllReduce::sum(Staging& values) {
  const Spans::Scope span(spans_, SpanKind::communicate);
  try {
    go_round(values);
  } catch (const JobFailed&) {
    give_up(values);
    throw;
  } catch (const std::exception& e) {
    transport_.fail(e.what());  // first: else others take a later message for one that is given up
    give_up(values);
    throw;
  }
}

// Whoever owns the values may end them from now on. A send may last until the neighbour has given
// up what it receives: that is given up first, or all could wait in a circle. Loans go back when
// the neighbour has given them back, as in return_loans().
void RingAllReduce::give_up(Staging& values) {
  try {
    values.settle();
  } catch (const std::exception&) {  // a device that has failed reads nothing any more
  }
  for (auto& slots : slots_)
    for (Slot& slot : slots) slot.received.reset();
  for (std::size_t step = loans_.size(); step-- > 0;) {
    for (Loan& loan : loans_[step]) {
      loan.sent.reset();
      loan.received.reset();
    }
    loans_[step].clear();
  }
  for (auto& slots : slots_)
    for (Slot& slot : slots)
      for (Request& sent : slot.sent) sent.reset();
}

void RingAllReduce::go_round(Staging& values) {
  if (plan_.empty()) {  // alone: the sum is what others would see of it
    for (const std::int64_t own : segments_.order) {
      values.wait(own);
      values.put(own);
    }
    return;
  }
  // Each part is added up while the complete sums of the one before make their round.
  const std::size_t half = plan_.size() / 2;
  for (std::size_t p = 0; p <= parts_.size(); ++p) {
    if (p < parts_.size()) set_out(p, values);
    for (std::size_t step = 0; step < half; ++step) {
      if (p > 0) take_step(half + step, p - 1, values);
      if (p < parts_.size()) take_step(step, p, values);
    }
  }
  for (auto& slots : slots_)
    for (Slot& slot : slots)
      for (Request& sent : slot.sent) transport_.wait(sent);
  return_loans(values);
}

// Step 0 sends what this rank has itself.
void RingAllReduce::set_out(std::size_t p, Staging& values) {
  auto& slots = slots_[p % slots_.size()];
  const auto [first, size] = parts_[p];
  for (std::size_t k = 0; k < size; ++k) begin_receive(0, first + k, slots[k], values);
  const int share = plan_[0].send_share;
  for (std::size_t k = 0; k < size; ++k)
    if (const auto own = segment(share, first + k)) {
      values.wait(*own);
      send(share, slots[k], values.packed(*own));
    }
}

// What a step has received is sent in the next one, segment by segment: while one is added, the
// next ones are on their way.
void RingAllReduce::take_step(std::size_t step, std::size_t p, Staging& values) {
  auto& slots = slots_[p % slots_.size()];
  const auto [first, size] = parts_[p];
  for (std::size_t k = 0; k < size; ++k) {
    take_in(step, first + k, slots[k], values);
    if (step + 1 < plan_.size()) begin_receive(step + 1, first + k, slots[k], values);
  }
}

void RingAllReduce::send(int share, Slot& slot, std::span<const std::byte> bytes) {
  Request& sent = slot.sent[static_cast<std::size_t>(share)];
  transport_.wait(sent);
  sent = transport_.send(right_, Tag::ring, bytes);
}

// A partial sum waits beside this rank's values to be added to them; a complete one takes their
// place as soon as they have left it, unless it may stay where it is.
void RingAllReduce::begin_receive(std::size_t step, std::size_t i, Slot& slot, Staging& values) {
  const int share = plan_[step].receive_share;
  const auto coming = segment(share, i);
  if (!coming) return;
  const std::span<std::byte> place = values.packed(*coming);
  if (plan_[step].phase == RingStep::Phase::reduce_scatter) {
    slot.received =
        transport_.receive_in_place(left_, Tag::ring, std::span(slot.partial).first(place.size()));
  } else {
    transport_.wait(slot.sent[static_cast<std::size_t>(share)]);
    slot.received = values.borrows() ? transport_.receive_in_place(left_, Tag::ring, place)
                                     : transport_.receive(left_, Tag::ring, place);
  }
}

// Waits for a segment, adds this rank's values if the sum is partial, and sends it on.
void RingAllReduce::take_in(std::size_t step, std::size_t i, Slot& slot, Staging& values) {
  const RingStep& now = plan_[step];
  const auto coming = segment(now.receive_share, i);
  if (!coming) return;
  const bool partial = now.phase == RingStep::Phase::reduce_scatter;
  const std::span<std::byte> place = values.packed(*coming);
  if (partial) values.wait(*coming);  // while the sum is on its way
  transport_.await(slot.received);
  if (partial) {
    const Spans::Scope span(spans_, adding(compressor_.lossless()));
    add_received(compressor_, slot.received->message(), cut_.elements_of(*coming), place,
                 transport_.helpers());
  }
  const bool complete = now.completes || !partial;
  if (complete && values.borrows()) {
    if (partial) slot.received.reset();  // the sum is here, and this rank its owner
    return pass_on(step, *coming, slot, values);
  }
  slot.received.reset();
  if (step + 1 < plan_.size()) send(now.receive_share, slot, place);
  if (complete) values.put(*coming);
}

// Sends a complete sum on from where its owner has it, and puts it from there.
void RingAllReduce::pass_on(std::size_t step, std::int64_t sum, Slot& slot, Staging& values) {
  Loan& loan = loans_[step].emplace_back();
  loan.received = std::move(slot.received);
  const std::span<const std::byte> bytes =
      loan.received ? loan.received->message() : values.packed(sum);
  if (step + 1 < plan_.size()) loan.sent = transport_.send(right_, Tag::ring, bytes);
  values.put_borrowed(sum, bytes);
}

// What was received last is returned first: it was not lent on to anyone. What was received a step
// earlier, the neighbour has received last; and so on: none waits for one who waits for him.
void RingAllReduce::return_loans(Staging& values) {
  values.settle();
  for (std::size_t step = loans_.size(); step-- > 0;) {
    for (Loan& loan : loans_[step]) {
      transport_.wait(loan.sent);
      loan.received.reset();
    }
    loans_[step].clear();
  }
}

std::optional<std::int64_t> RingAllReduce::segment(int share, std::size_t i) const {
  const auto number = static_cast<std::int64_t>(i);
  if (number >= cut_.segments_of_share(share)) return {};
  return cut_.segment_of_share(share, number);
}

}  // namespace tandem

#include "dist/schedule/direct_sum.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "dist/compress/hop.h"
#include "dist/finite.h"
#include "dist/host_staging.h"
#include "tensor/backend.h"

namespace tandem {
namespace {

constexpr std::size_t kHeader = 16;        // the number of the slice; keeps values aligned
constexpr std::size_t kReceivesAhead = 2;  // per worker and tag
constexpr auto kPoll = std::chrono::microseconds(50);  // while a GPU computes

}  // namespace

DirectSum::DirectSum(const StrategyContext& context, const std::vector<Stage>& stages,
                     const std::vector<Slice>& slices)
    : c_(context), transport_(context.communication.transport()), self_(transport_.rank()) {
  const auto workers = static_cast<std::size_t>(c_.workers);
  for (const Stage& stage : stages) {
    stages_.push_back({.range = stage.range});
    stages_.back().staging = make_staging(c_.parameters.device(), c_.compressor, stage.range.count,
                                          c_.communication.spans());
  }
  for (int worker = 0; worker < c_.workers; ++worker)
    if (worker != self_)
      for (const Tag tag : {Tag::push, Tag::pull})
        incoming_.push_back({.from = worker, .tag = tag});

  for (const Slice& slice : slices) {
    StageState& stage = stages_.at(slice.stage);
    if (stage.parts++ == 0) stage.first_part = parts_.size();
    Part part{.slice = slice, .first_segment = stage.segments.size()};
    part.pushes.resize(workers);
    const std::int64_t begin = (slice.range.first_block - stage.range.first_block) * kBlock;
    const auto place = [&](std::int64_t i) {
      return begin + std::min(slice.range.count, i * slice.range.blocks() / c_.workers * kBlock);
    };
    for (std::int64_t i = 0; i < c_.workers; ++i) {
      stage.segments.push_back(
          {.first = place(i), .count = place(i + 1) - place(i), .step = kBlock});
      largest_ = std::max(largest_, kHeader + c_.compressor.bytes(stage.segments.back().count));
    }
    parts_.push_back(std::move(part));
    for (Incoming& in : incoming_)
      in.per_iteration += !empty(parts_.back(), in.tag == Tag::push ? self_ : in.from);
    window_ = std::max(window_, 2 * c_.compressor.bytes(slice.range.count));
  }
  window_ = std::max(window_, 2 * transport_.latency_bytes());
}

// The stretches of different slices begin with different workers, so that slices of a single block
// are spread, too.
std::size_t DirectSum::segment_of(const Part& part, int adder) const {
  const std::int64_t first = part.slice.range.first_block % c_.workers;
  return part.first_segment + static_cast<std::size_t>((adder + first) % c_.workers);
}

bool DirectSum::empty(const Part& part, int adder) const {
  return stages_[part.slice.stage].segments[segment_of(part, adder)].count == 0;
}

void DirectSum::begin(std::size_t stage, std::int64_t iteration, const EventPtr& ready) {
  StageState& s = stages_.at(stage);
  s.staging->begin(c_.parameters.gradients().view(s.range.first(), {s.range.count}), ready,
                   s.segments, Staging::Fill::from_values);
  begun_.put({stage, iteration, ready});
  if (begun_in_iteration_++ == 0)
    c_.communication.post(summed_, [this] { return run(), Summed{}; });
  else
    transport_.wake();
  if (begun_in_iteration_ == stages_.size()) begun_in_iteration_ = 0;
}

// All messages of one iteration.
void DirectSum::run() {
  const Spans::Scope span(c_.communication.spans(), SpanKind::communicate);
  try {
    begin_iteration();
    while (!over()) {
      take_begun();
      send_the_most_urgent();
      receive_more();
      if (over()) return;
      wait();
      deliver();
    }
  } catch (...) {  // cancel them before their memory is freed
    for (Incoming& in : incoming_) in.receives.clear();
    sends_.clear();
    throw;
  }
}

bool DirectSum::over() const { return not_summed_ == 0 && outgoing_.empty() && sends_.empty(); }

// A worker sends its values of the next iteration only when it has all sums of this one. So within
// a tag, the messages of two iterations do not mix.
void DirectSum::begin_iteration() {
  not_begun_ = not_summed_ = stages_.size();
  for (StageState& stage : stages_) {
    stage.begun = false;
    stage.left = static_cast<std::size_t>(
        std::ranges::count_if(stage.segments, [](const Segment& s) { return s.count > 0; }));
  }
  for (Part& part : parts_)
    part.missing = empty(part, self_) ? 0 : static_cast<std::size_t>(c_.workers - 1);
  for (Incoming& in : incoming_) in.left = in.per_iteration;
}

void DirectSum::take_begun() {
  while (not_begun_ > queued_.size() && begun_.wait_until(Clock::now()))
    queued_.push_back(begun_.take());
  while (!queued_.empty() && (!queued_.front().ready || queued_.front().ready->passed())) {
    start(queued_.front());
    queued_.pop_front();
    --not_begun_;
  }
}

// Queues this rank's values of a stage for the workers that add them.
void DirectSum::start(const Begun& begun) {
  StageState& stage = stages_[begun.stage];
  c_.communication.spans().set_iteration(begun.iteration);
  require_finite(c_.parameters, *stage.staging, stage.range.first(), begun.ready, begun.iteration,
                 c_.communication.spans());
  stage.begun = true;
  for (std::size_t i = stage.first_part; i < stage.first_part + stage.parts; ++i) {
    for (int hop = 1; hop < c_.workers; ++hop) {
      const int to = (self_ + hop) % c_.workers;
      if (!empty(parts_[i], to))
        outgoing_.push({parts_[i].slice.rank, messages_++, Tag::push, to, i, nullptr});
    }
    if (parts_[i].missing == 0 && !empty(parts_[i], self_)) add(i);
  }
}

void DirectSum::send_the_most_urgent() {
  while (!outgoing_.empty() && (in_flight_ == 0 || in_flight_ + largest_ <= window_)) {
    const Outgoing next = outgoing_.top();
    outgoing_.pop();
    SharedBytes bytes = next.sum;
    if (!bytes) {
      const std::size_t segment = segment_of(parts_[next.part], next.to);
      Staging& staging = *stages_[parts_[next.part].slice.stage].staging;
      staging.wait(segment);
      bytes = message(next.part, staging.packed(segment).whole());
    }
    in_flight_ += bytes->size();
    Request request = transport_.send(next.to, next.tag, *bytes);
    sends_.push_back({std::move(bytes), std::move(request)});
  }
}

void DirectSum::receive_more() {
  for (Incoming& in : incoming_)
    for (; in.left > 0 && in.receives.size() < kReceivesAhead; --in.left) {
      auto bytes = std::make_shared<Bytes>(largest_);
      Request request = transport_.receive(in.from, in.tag, *bytes);
      in.receives.push_back({std::move(bytes), std::move(request)});
    }
}

// Waits for a message, or for the compute thread. While this rank still computes, no rank can
// blame another for being late.
void DirectSum::wait() {
  std::vector<Request*> requests;
  for (InTransit& send : sends_) requests.push_back(&send.request);
  for (Incoming& in : incoming_)
    for (InTransit& receive : in.receives) requests.push_back(&receive.request);
  if (not_begun_ == 0) return transport_.await_any(requests, Patience::until_timeout);

  const Spans::Scope span(c_.communication.spans(),
                          sends_.empty() ? SpanKind::wait : SpanKind::communicate);
  const auto now = Clock::now();
  const auto until = now + (queued_.empty() ? transport_.slice() : Clock::duration(kPoll));
  transport_.wait_any_until(requests, until);  // also ended by wake() and by a failure elsewhere
  if (Clock::now() >= now + transport_.slice()) transport_.show({Sign::State::busy});
}

void DirectSum::deliver() {
  std::erase_if(sends_, [&](const InTransit& send) {
    const bool done = transport_.done(send.request);
    if (done) in_flight_ -= send.bytes->size();
    return done;
  });
  for (Incoming& in : incoming_)
    while (!in.receives.empty() && transport_.done(in.receives.front().request)) {
      const InTransit message = std::move(in.receives.front());
      in.receives.pop_front();
      message.bytes->resize(message.request->bytes);
      arrived(in, message.bytes);
    }
}

void DirectSum::arrived(const Incoming& from, const SharedBytes& bytes) {
  std::uint64_t number = 0;
  std::memcpy(&number, bytes->data(), sizeof number);
  require(number < parts_.size(), "rank {} sent slice {} of {}", from.from, number, parts_.size());
  if (from.tag == Tag::pull) return put(number, from.from, std::span(*bytes).subspan(kHeader));
  Part& part = parts_[number];
  part.pushes[static_cast<std::size_t>(from.from)] = bytes;
  if (--part.missing == 0 && stages_[part.slice.stage].begun) add(number);
}

// Adds all workers' values of this rank's stretch, and sends the sum to the others.
void DirectSum::add(std::size_t number) {
  Part& part = parts_[number];
  StageState& stage = stages_[part.slice.stage];
  const std::size_t segment = segment_of(part, self_);
  stage.staging->wait(segment);
  const Pieces own = stage.staging->packed(segment);
  if (c_.workers > 1) {
    std::vector<ConstPieces> values(static_cast<std::size_t>(c_.workers), own);
    for (std::size_t worker = 0; worker < values.size(); ++worker)
      if (part.pushes[worker])
        values[worker] = std::span<const std::byte>(*part.pushes[worker]).subspan(kHeader);
    const Spans::Scope span(c_.communication.spans(), adding(c_.compressor.lossless()));
    const Segment& s = stage.segments[segment];
    add_blocks(c_.compressor, values, stage.range.first_block + s.first / kBlock, s.count, own,
               transport_.helpers());
    for (SharedBytes& push : part.pushes) push.reset();
    const SharedBytes sum = message(number, own.whole());
    for (int hop = 1; hop < c_.workers; ++hop)
      outgoing_.push(
          {part.slice.rank, messages_++, Tag::pull, (self_ + hop) % c_.workers, number, sum});
  }
  put(number, self_, own.whole());
}

// The sum of a worker's stretch is known.
void DirectSum::put(std::size_t number, int adder, std::span<const std::byte> sum) {
  const Part& part = parts_[number];
  StageState& stage = stages_[part.slice.stage];
  const std::size_t segment = segment_of(part, adder);
  const std::span<std::byte> packed = stage.staging->packed(segment).whole();
  require(packed.size() == sum.size(), "rank {} sent a sum of {} bytes instead of {}", adder,
          sum.size(), packed.size());
  if (packed.data() != sum.data()) std::ranges::copy(sum, packed.begin());
  stage.staging->put(segment, packed);
  if (--stage.left > 0) return;
  summed_.put({part.slice.stage, stage.staging->finish()});
  --not_summed_;
}

DirectSum::SharedBytes DirectSum::message(std::size_t number,
                                          std::span<const std::byte> payload) const {
  auto bytes = std::make_shared<Bytes>(kHeader + payload.size());
  const std::uint64_t slice = number;
  std::memcpy(bytes->data(), &slice, sizeof slice);
  std::ranges::copy(payload, bytes->begin() + kHeader);
  return bytes;
}

}  // namespace tandem

#include "dist/schedule/direct_sum.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include "dist/compress/hop.h"
#include "dist/finite.h"
#include "dist/host_staging.h"
#include "dist/schedule/measure.h"
#include "tensor/backend.h"

namespace tandem {
namespace {

struct Header {
  std::uint64_t kind, slice;  // 16 bytes: the values after it stay aligned
};
constexpr std::size_t kReceivesAhead = 2;  // per rank and tag

}  // namespace

std::size_t window_of(const StrategyContext& c, const std::vector<Slice>& slices,
                      const SumCost& cost) {
  constexpr double kWaitForCore_s = 8e-3;
  std::int64_t largest = 0;
  for (const Slice& slice : slices) largest = std::max(largest, slice.range.count);
  const std::size_t slice = c.compressor.bytes(largest);
  const std::size_t round_trip = 2 * c.communication.transport().latency_bytes();
  if (!c.parameters.device().is_cpu()) return std::max(2 * slice, round_trip);

  // The network carries this many slices while a thread waits; more than all are not needed.
  const double most = static_cast<double>(slices.size());
  const double slice_s = cost.b * static_cast<double>(largest) * sizeof(float);
  const double carried = slice_s * most > kWaitForCore_s ? kWaitForCore_s / slice_s : most;
  // In the sums whose cost was measured, a rank sends 2(p-1)/p bytes for each byte.
  const double p = c.workers, sent = p > 1 ? 2 * (p - 1) / p : 1;
  return std::max(
      {slice, round_trip, static_cast<std::size_t>(carried * sent * static_cast<double>(slice))});
}

DirectSum::DirectSum(const StrategyContext& context, const std::vector<Slice>& slices,
                     const Adders& adders, std::size_t window)
    : SliceSums(context), adders_(adders), self_(transport_.rank()), window_(window) {
  const auto expect = [&](int first, int count, Tag tag) {
    for (int rank = first; rank < first + count; ++rank)
      if (rank != self_) incoming_.push_back({.from = rank, .tag = tag});
  };
  if (adders_.include(self_)) expect(0, c_.workers, Tag::push);
  if (works()) expect(adders_.first, adders_.count, Tag::pull);

  for (const Slice& slice : slices) {
    if (slice.stage == stages_.size())
      stages_.push_back(
          {.range = {.first_block = slice.range.first_block}, .first_part = parts_.size()});
    StageState& stage = stages_.at(slice.stage);
    ++stage.parts;
    Part part{.slice = slice, .first_segment = stage.segments.size()};
    part.pushes.resize(static_cast<std::size_t>(c_.workers));
    const std::int64_t blocks = slice.range.blocks(), count = adders_.count;
    const std::int64_t only = (slice.adder + slice.range.first_block) % count;  // see segment_of()
    const auto place = [&](std::int64_t i) {
      const std::int64_t block = slice.adder == Slice::kAll ? i * blocks / count
                                 : i > only                 ? blocks
                                                            : 0;
      return stage.range.count + std::min(slice.range.count, block * kBlock);
    };
    for (std::int64_t i = 0; i < count; ++i) {
      stage.segments.push_back(
          {.first = place(i), .count = place(i + 1) - place(i), .step = kBlock});
      largest_ =
          std::max(largest_, sizeof(Header) + c_.compressor.bytes(stage.segments.back().count));
    }
    stage.range.count += slice.range.count;
    parts_.push_back(std::move(part));
    for (Incoming& in : incoming_)
      if (!empty(parts_.back(), in.tag == Tag::push ? self_ : in.from))
        in.per_iteration += adders_.on_request ? 2 : 1;
  }
  window_ = std::max(window_, 2 * largest_);  // while one message travels, the next is prepared
  if (works())
    for (StageState& stage : stages_)
      stage.staging = make_staging(c_.parameters.device(), c_.compressor, stage.range.count,
                                   c_.communication.spans());
}

// The stretches of different slices begin with different adders, so that slices of a single block
// are spread, too.
std::size_t DirectSum::segment_of(const Part& part, int adder) const {
  const std::int64_t turned = adder - adders_.first + part.slice.range.first_block;
  return part.first_segment + static_cast<std::size_t>(turned % adders_.count);
}

bool DirectSum::empty(const Part& part, int adder) const {
  return stages_[part.slice.stage].segments[segment_of(part, adder)].count == 0;
}

void DirectSum::begin(std::size_t stage, std::int64_t iteration, const EventPtr& ready) {
  StageState& s = stages_.at(stage);
  s.staging->begin(c_.parameters.gradients().view(s.range.first(), {s.range.count}), ready,
                   s.segments, Staging::Fill::from_values);
  begun_.put({stage, iteration, ready});
  has_begun(stages_.size());
}

void DirectSum::serve(std::int64_t iteration) {
  c_.communication.spans().set_iteration(iteration);
  run();
}

// All messages of one iteration. If the job fails, requests keep their memory until this object is
// destroyed: MPI does not cancel them.
void DirectSum::run() {
  const Spans::Scope span(c_.communication.spans(), SpanKind::communicate);
  begin_iteration();
  while (!over()) {
    take_begun();
    send_the_most_urgent();
    receive_more();
    if (over()) return;
    wait();
    deliver();
  }
}

bool DirectSum::over() const {
  return not_begun_ == 0 && outgoing_.empty() && sends_.empty() &&
         std::ranges::all_of(
             incoming_, [](const Incoming& in) { return in.left == 0 && in.receives.empty(); });
}

// A worker sends its values of the next iteration only when it has all sums of this one. So within
// a tag, the messages of two iterations do not mix.
void DirectSum::begin_iteration() {
  not_begun_ = works() ? stages_.size() : 0;
  for (StageState& stage : stages_) {
    stage.begun = !works();
    stage.left = static_cast<std::size_t>(
        std::ranges::count_if(stage.segments, [](const Segment& s) { return s.count > 0; }));
  }
  if (adders_.include(self_))
    for (Part& part : parts_)
      part.missing = empty(part, self_) ? 0 : static_cast<std::size_t>(c_.workers - works());
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

// Queues this worker's values of a stage for their adders.
void DirectSum::start(const Begun& begun) {
  StageState& stage = stages_[begun.stage];
  c_.communication.spans().set_iteration(begun.iteration);
  require_finite(c_.parameters, *stage.staging, stage.range.first(), begun.ready, begun.iteration,
                 c_.communication.spans());
  stage.begun = true;
  for (std::size_t i = stage.first_part; i < stage.first_part + stage.parts; ++i) {
    for (int hop = 0; hop < adders_.count; ++hop) {
      const int to = adders_.first + (self_ + hop) % adders_.count;
      if (to != self_ && !empty(parts_[i], to)) queue(Kind::values, to, i);
    }
    if (adders_.include(self_) && parts_[i].missing == 0 && !empty(parts_[i], self_)) add(i);
  }
}

void DirectSum::queue(Kind kind, int to, std::size_t part) {
  outgoing_.push({parts_[part].slice.rank, messages_++, kind, to, part});
}

void DirectSum::send_the_most_urgent() {
  while (!outgoing_.empty() && (in_flight_ == 0 || in_flight_ + largest_ <= window_)) {
    const Outgoing next = outgoing_.top();
    outgoing_.pop();
    Message message = message_of(next);
    in_flight_ += message.bytes.size();
    const bool to_adder = next.kind == Kind::values || next.kind == Kind::request;
    Request request =
        transport_.send(next.to, to_adder ? Tag::push : Tag::pull, message.bytes, message.memory);
    sends_.push_back({std::move(message), std::move(request)});
  }
}

DirectSum::Message DirectSum::message_of(const Outgoing& outgoing) {
  const Part& part = parts_[outgoing.part];
  if (outgoing.kind == Kind::sum) return part.sum;
  if (outgoing.kind != Kind::values) return make_message(outgoing.kind, outgoing.part, 0);
  const std::size_t segment = segment_of(part, outgoing.to);
  Staging& staging = *stages_[part.slice.stage].staging;
  staging.wait(segment);
  const std::span<std::byte> values = staging.packed(segment).whole();
  Message message = make_message(Kind::values, outgoing.part, values.size());
  c_.compressor.copy(values, message.bytes.subspan(sizeof(Header)));
  return message;
}

void DirectSum::receive_more() {
  for (Incoming& in : incoming_)
    for (; in.left > 0 && in.receives.size() < kReceivesAhead; --in.left) {
      Message message = new_message(largest_);
      Request request = transport_.receive_in_place(in.from, in.tag, message.bytes);
      in.receives.push_back({std::move(message), std::move(request)});
    }
}

// Waits for a message, or for the compute thread. While this rank still computes, no rank can
// blame another for being late. A server waits for as long as the workers compute.
void DirectSum::wait() {
  std::vector<Request*> requests;
  for (auto send = sends_.begin(); send != watched_end(); ++send)
    requests.push_back(&send->request);
  // Not for a later receive that happens to complete first: deliver() would not take it, and
  // waiting for it again would return at once, without progress.
  for (Incoming& in : incoming_)
    if (!in.receives.empty()) requests.push_back(&in.receives.front().request);
  if (not_begun_ == 0)
    return transport_.await_any(requests,
                                works() ? Patience::until_timeout : Patience::while_others_work);

  const Spans::Scope span(c_.communication.spans(),
                          sends_.empty() ? SpanKind::wait : SpanKind::communicate);
  c_.communication.wait_a_while(requests, !queued_.empty());
}

std::deque<DirectSum::InTransit>::iterator DirectSum::watched_end() {
  return sends_.begin() + std::min(kSendsWatched, std::ssize(sends_));
}

void DirectSum::deliver() {
  const auto still_travel = [&](const InTransit& send) {
    const bool done = transport_.done(send.request);
    if (done) in_flight_ -= send.message.bytes.size();
    return !done;
  };
  sends_.erase(sends_.begin(),
               std::stable_partition(sends_.begin(), watched_end(), std::not_fn(still_travel)));
  for (Incoming& in : incoming_)
    while (!in.receives.empty() && transport_.done(in.receives.front().request)) {
      const InTransit received = std::move(in.receives.front());
      in.receives.pop_front();
      arrived(received);
    }
}

void DirectSum::arrived(const InTransit& received) {
  const int from = received.request->source;
  const std::span<const std::byte> message = received.request->message();
  Header header{};
  require(message.size() >= sizeof header, "rank {} sent {} bytes", from, message.size());
  std::memcpy(&header, message.data(), sizeof header);
  const std::size_t number = header.slice;
  require(number < parts_.size(), "rank {} sent slice {} of {}", from, number, parts_.size());
  Part& part = parts_[number];
  switch (static_cast<Kind>(header.kind)) {
    case Kind::values:
      part.pushes[static_cast<std::size_t>(from)] = kept(received);
      if (--part.missing == 0 && stages_[part.slice.stage].begun) add(number);
      return;
    case Kind::request:
      return queue(Kind::sum, from, number);
    case Kind::announcement:
      return queue(Kind::request, from, number);
    case Kind::sum:
      return put(number, from, message.subspan(sizeof header));
  }
  throw SystemError("rank {} sent a message of kind {}", from, header.kind);
}

// The message in memory that outlives its request, so that its sender can send others.
DirectSum::Message DirectSum::kept(const InTransit& received) {
  const Operation& request = *received.request;
  const Storage& memory = request.owner ? request.owner : received.message.memory;
  require(request.data == memory.data(), "a message of rank {} cannot be kept", request.source);
  return {memory, {memory.data(), request.bytes}};
}

// Adds all workers' values of this rank's stretch, and sends or announces the sum.
void DirectSum::add(std::size_t number) {
  Part& part = parts_[number];
  StageState& stage = stages_[part.slice.stage];
  const std::size_t segment = segment_of(part, self_);
  const Segment& s = stage.segments[segment];
  part.sum = make_message(Kind::sum, number, c_.compressor.bytes(s.count));
  const std::span<std::byte> sum = part.sum.bytes.subspan(sizeof(Header));

  std::vector<ConstPieces> values(static_cast<std::size_t>(c_.workers));
  for (std::size_t worker = 0; worker < values.size(); ++worker)
    if (part.pushes[worker].memory)
      values[worker] =
          std::span<const std::byte>(part.pushes[worker].bytes.subspan(sizeof(Header)));
  if (works()) {
    stage.staging->wait(segment);
    values[static_cast<std::size_t>(self_)] = stage.staging->packed(segment);
  }
  {
    const Spans::Scope span(c_.communication.spans(), adding(c_.compressor.lossless()));
    add_blocks(c_.compressor, values, stage.range.first_block + s.first / kBlock, s.count, sum,
               transport_.helpers());
  }
  for (Message& push : part.pushes) push = {};
  for (int hop = 0; hop < c_.workers; ++hop)
    if (const int to = (self_ + hop) % c_.workers; to != self_)
      queue(adders_.on_request ? Kind::announcement : Kind::sum, to, number);
  if (works()) put(number, self_, sum);
}

// The sum of an adder's stretch is known.
void DirectSum::put(std::size_t number, int adder, std::span<const std::byte> sum) {
  const Part& part = parts_[number];
  StageState& stage = stages_[part.slice.stage];
  const std::size_t segment = segment_of(part, adder);
  const std::span<std::byte> packed = stage.staging->packed(segment).whole();
  require(packed.size() == sum.size(), "rank {} sent a sum of {} bytes instead of {}", adder,
          sum.size(), packed.size());
  c_.compressor.copy(sum, packed);
  stage.staging->put(segment, packed);
  if (--stage.left == 0) summed_.put({part.slice.stage, {stage.staging->finish()}});
}

DirectSum::Message DirectSum::make_message(Kind kind, std::size_t number, std::size_t payload) {
  const Header header{static_cast<std::uint64_t>(kind), number};
  Message message = new_message(sizeof header + payload);
  std::memcpy(message.bytes.data(), &header, sizeof header);
  return message;
}

DirectSum::Message DirectSum::new_message(std::size_t size) {
  const Storage memory(host_, size);
  return {memory, {memory.data(), size}};
}

void SumServer::serve(std::int64_t first, std::int64_t last) {
  for (std::int64_t t = first; t <= last; ++t) {
    ++step_;
    if (sums_) sums_->serve(t);
    if (step_ == kLastMeasured) listen();
  }
}

void SumServer::listen() {
  Transport& transport = c_.communication.transport();
  Request told = transport.receive(0, Tag::pull, std::as_writable_bytes(std::span(&told_, 1)));
  transport.wait(told, Patience::while_others_work);
  slices_.resize(told_.slices);
  transport.receive_and_wait(0, Tag::pull, std::as_writable_bytes(std::span(slices_)));
  sums_ = std::make_unique<DirectSum>(c_, slices_, adders_, told_.window);
}

void SumServer::tell(Transport& transport, const Adders& adders, const std::vector<Slice>& slices,
                     std::size_t window) {
  const Told told{slices.size(), window};
  for (int server = adders.first; server < adders.first + adders.count; ++server) {
    transport.send_and_wait(server, Tag::pull, std::as_bytes(std::span(&told, 1)));
    transport.send_and_wait(server, Tag::pull, std::as_bytes(std::span(slices)));
  }
}

}  // namespace tandem

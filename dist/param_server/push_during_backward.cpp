#include "dist/param_server/push_during_backward.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "base/error.h"
#include "dist/finite.h"
#include "dist/host_staging.h"
#include "tensor/backend.h"

namespace tandem {

PushDuringBackward::PushDuringBackward(const StrategyContext& context, Shards& shards,
                                       Staging* answer)
    : c_(context), shards_(shards), answer_(answer), ends_in_(context.parameters.all().size()) {
  const std::vector<Parameter*>& parameters = c_.parameters.trained();
  const std::vector<Segment>& all = shards_.segments();
  // The first parameter of a segment, which backward usually finishes last.
  const auto first_of = [&](const Segment& segment) {
    return std::ranges::find_if(parameters, [&](const Parameter* p) {
      return p->offset + p->shape.count() > segment.first;
    });
  };
  for (std::size_t first = 0, end = 0; first < all.size(); first = end) {
    while (end < all.size() && first_of(all[end]) == first_of(all[first])) ++end;
    add_part(first, end);
  }
  for (const Parameter* p : parameters) {
    const std::int64_t last = p->offset + p->shape.count() - 1;
    const auto part = std::ranges::find_if(parts_, [&](const Part& q) { return last >= q.first; });
    ++part->parameters;
    ends_in_[static_cast<std::size_t>(p->index)] = static_cast<std::size_t>(part - parts_.begin());
  }
}

void PushDuringBackward::begin_step(std::int64_t t) {
  t_ = t;
  handed_over_ = 0;
  for (Part& part : parts_) part.missing = part.parameters;
}

// The event of the last parameter comes after those of the others.
void PushDuringBackward::on_grad_ready(const Parameter& parameter) {
  --parts_[ends_in_[static_cast<std::size_t>(parameter.index)]].missing;
  while (handed_over_ < parts_.size() && parts_[handed_over_].missing == 0)
    hand_over(parameter.ready);
}

void PushDuringBackward::end_step() {
  require(handed_over_ == parts_.size(), "backward has finished {} parts of {}", handed_over_,
          parts_.size());
  const Spans::Scope span(c_.spans, SpanKind::wait);
  c_.parameters.device().backend().wait_for(answered_.take());
}

// Queues the copy to the host at once. The first part of an iteration starts the job, the others
// wake it.
void PushDuringBackward::hand_over(const EventPtr& ready) {
  const Part& part = parts_[handed_over_];
  part.staging->begin(c_.parameters.gradients().view(part.first, {part.count}), ready,
                      part.segments);
  ready_.put(ready);
  if (handed_over_++ == 0)
    c_.communication.post(answered_, [this, ready] { return run(ready); });
  else
    c_.communication.transport().wake();
}

void PushDuringBackward::add_part(std::size_t first_segment, std::size_t end_segment) {
  const std::vector<Segment>& all = shards_.segments();
  const Segment &top = all[first_segment], &bottom = all[end_segment - 1];
  Part part{.first_segment = first_segment,
            .first = bottom.first,
            .count = top.first + top.count - bottom.first};
  for (std::size_t i = first_segment; i < end_segment; ++i) {
    part.segments.push_back(all[i]);
    part.segments.back().first -= part.first;
  }
  part.staging =
      make_staging(c_.parameters.device(), c_.compressor, part.count, c_.communication.spans());
  parts_.push_back(std::move(part));
}

// `ready`: after it, the weights' way from the host is free.
EventPtr PushDuringBackward::run(const EventPtr& ready) {
  Spans& spans = c_.communication.spans();
  spans.set_iteration(t_);
  const Spans::Scope span(spans, SpanKind::communicate);
  if (answer_) shards_.begin_pull(*answer_, c_.parameters.values(), ready);
  shards_.begin_push(t_);

  std::deque<EventPtr> handed_over;  // a GPU may still compute these parts
  std::size_t pushed = 0;            // parts
  for (;;) {
    while (ready_.wait_until(Clock::now())) handed_over.push_back(ready_.take());
    for (; !handed_over.empty() && (!handed_over.front() || handed_over.front()->passed());
         handed_over.pop_front())
      push(parts_[pushed++], handed_over.front());
    if (answer_) shards_.take_answers(*answer_);
    if (pushed == parts_.size()) break;
    const std::vector<Request*> in_flight = shards_.in_flight();
    const Spans::Scope waits(spans, in_flight.empty() ? SpanKind::wait : SpanKind::communicate);
    c_.communication.wait_a_while(in_flight, !handed_over.empty());
  }
  const EventPtr answered = answer_ ? shards_.end_pull(*answer_) : nullptr;
  shards_.end_push();
  for (const Part& part : parts_) part.staging->finish();
  return answered;
}

void PushDuringBackward::push(const Part& part, const EventPtr& ready) {
  require_finite(c_.parameters, *part.staging, part.first, ready, t_, c_.communication.spans());
  for (std::size_t i = 0; i < part.segments.size(); ++i) {
    part.staging->wait(i);
    shards_.push_segment(part.first_segment + i, part.staging->packed(i).whole());
  }
}

}  // namespace tandem

#include "dist/timing/spans.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

namespace tandem {

void Spans::end(const Scope& scope) {
  const auto now = Clock::now();
  const double seconds = seconds_between(scope.begin_, now);
  add(scope.kind_, iteration_, seconds - scope.inside_);
  if (scope.outer_) scope.outer_->inside_ += seconds;
  if (keep_all_) all_.push_back({scope.kind_, iteration_, scope.begin_, now});
}

void Spans::end_on_device(const Scope& scope) noexcept {
  if (scope.kind_ == SpanKind::data) {
    data_begin_ = scope.begin_;
    data_end_ = Clock::now();
  }
  if (!scope.queued_ && !scope.interrupts()) return;
  try {
    const EventPtr end = device_->record_event(Event::Timing::on);
    if (scope.queued_)
      queued_.push_back({scope.kind_, iteration_, scope.queued_, end, data_begin_, data_end_});
    if (scope.interrupts()) scope.outer_->queued_ = end;
  } catch (const std::exception&) {  // the GPU has failed; the next call that uses it reports that
  }
}

// Enters the part of the outer span that is over.
void Spans::interrupt(const Scope& outer, EventPtr at) {
  if (!at) at = device_->record_event(Event::Timing::on);
  queued_.push_back({outer.kind_, iteration_, outer.queued_, at, data_begin_, data_end_});
}

void Spans::follow(DeviceQueue& device) {
  device_ = &device;
  queued_.clear();
  last_event_ = device.record_event(Event::Timing::on);
  last_event_->wait();
  last_end_ = Clock::now();
}

void Spans::settle(std::int64_t iteration) {
  for (; !queued_.empty() && queued_.front().iteration <= iteration; queued_.pop_front())
    settle(queued_.front());
}

void Spans::settle(const Queued& queued) {
  const auto begin = last_end_ + from_seconds(queued.begin->seconds_since(*last_event_));
  const auto end = begin + from_seconds(queued.end->seconds_since(*queued.begin));
  // The GPU was idle from last_end_ to begin. While the thread waited for a batch, that was the
  // cause.
  const auto data_begin = std::clamp(queued.data_begin, last_end_, begin);
  const auto data_end = std::clamp(queued.data_end, last_end_, begin);
  enter(SpanKind::data, queued.iteration, data_begin, data_end);
  enter(SpanKind::wait, queued.iteration, last_end_, data_begin);
  enter(SpanKind::wait, queued.iteration, data_end, begin);
  enter(queued.kind, queued.iteration, begin, end);
  last_event_ = queued.end;
  last_end_ = end;
}

void Spans::enter(SpanKind kind, std::int64_t iteration, Clock::time_point begin,
                  Clock::time_point end) {
  if (begin == end) return;
  add(kind, iteration, seconds_between(begin, end));
  if (keep_all_) all_.push_back({kind, iteration, begin, end});
}

void Spans::visit(State& state, const std::string& of) {
  for (std::size_t kind = 0; kind < seconds_.size(); ++kind)
    state(fmt::format("seconds of {} in {}", of, kSpanNames[kind]), seconds_[kind]);
}

}  // namespace tandem

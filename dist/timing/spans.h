// Spans: named, timed intervals on one thread. The summary's breakdown and the timeline of --trace
// are made of them.
//
// If a GPU computes, the worker's thread only queues work. GPU events then time the spans of that
// work, and settle() records them once the work is done. Gaps between these spans count as waiting,
// for the next batch or for the communication thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "tensor/device_queue.h"
#include "tensor/state.h"

namespace tandem {

enum class SpanKind : std::uint8_t {
  data,         // waiting for the next batch
  forward,      //
  backward,     //
  update,       // updating the weights
  compress,     // compressing, decompressing and adding compressed gradients
  sum,          // adding uncompressed gradients
  communicate,  // sending, receiving and waiting for other ranks
  wait,         // waiting for the rank's other thread
};
inline constexpr std::array<const char*, 8> kSpanNames = {
    "data", "forward", "backward", "update", "compress", "sum", "communicate", "wait"};

// The kind of a span in which gradients are added.
inline SpanKind adding(bool lossless) { return lossless ? SpanKind::sum : SpanKind::compress; }

// The spans of one thread. Cheap enough to stay on: two clock readings and two additions each.
class Spans {
 public:
  struct Span {
    SpanKind kind;
    std::int64_t iteration;
    Clock::time_point begin, end;
  };

  // Measures from construction to destruction. Time in nested spans counts only for the inner span.
  class Scope {
   public:
    Scope(Spans& spans, SpanKind kind)
        : spans_(spans),
          kind_(kind),
          queued_(spans.on_device(kind) ? spans.device_->record_event(Event::Timing::on) : nullptr),
          outer_(std::exchange(spans.innermost_, this)),
          begin_(Clock::now()) {
      if (interrupts()) spans_.interrupt(*outer_, queued_);
    }
    ~Scope() {
      spans_.innermost_ = outer_;
      if (spans_.device_)
        spans_.end_on_device(*this);
      else
        spans_.end(*this);
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    friend Spans;
    // Whether the outer span's work on a GPU stops during this span.
    bool interrupts() const {
      return outer_ && outer_->queued_ && (queued_ || kind_ == SpanKind::wait);
    }

    Spans& spans_;
    SpanKind kind_;
    EventPtr queued_;  // null unless a GPU does the work
    Scope* outer_;
    Clock::time_point begin_;
    double inside_ = 0;  // seconds in nested spans
  };

  // The total of all spans since the first counted iteration.
  double seconds(SpanKind kind) const { return seconds_[static_cast<std::size_t>(kind)]; }
  void count_from(std::int64_t iteration) { first_counted_ = iteration; }

  // Saves or loads the totals. `of` names the thread.
  void visit(State& state, const std::string& of);

  // From now on, this GPU times forward, backward and update. It must be idle now, and outlive the
  // spans. Call this again after anything that should not count as waiting.
  void follow(DeviceQueue& device);
  // Records the GPU's spans up to this iteration, whose work must be done.
  void settle(std::int64_t iteration);

  // Also keeps every span, for the timeline.
  void keep_all() { keep_all_ = true; }
  const std::vector<Span>& all() const { return all_; }
  void set_iteration(std::int64_t iteration) { iteration_ = iteration; }

 private:
  // A span of work queued on the GPU.
  struct Queued {
    SpanKind kind;
    std::int64_t iteration;
    EventPtr begin, end;
    Clock::time_point data_begin, data_end;  // when the thread last waited for a batch
  };

  bool on_device(SpanKind kind) const {
    return device_ &&
           (kind == SpanKind::forward || kind == SpanKind::backward || kind == SpanKind::update);
  }
  void end(const Scope& scope);
  void end_on_device(const Scope& scope) noexcept;
  void interrupt(const Scope& outer, EventPtr at);
  void enter(SpanKind kind, std::int64_t iteration, Clock::time_point begin, Clock::time_point end);
  void settle(const Queued& queued);
  void add(SpanKind kind, std::int64_t iteration, double seconds) {
    if (iteration >= first_counted_) seconds_[static_cast<std::size_t>(kind)] += seconds;
  }

  std::array<double, kSpanNames.size()> seconds_{};
  Scope* innermost_ = nullptr;
  bool keep_all_ = false;
  std::int64_t iteration_ = 0, first_counted_ = 0;
  std::vector<Span> all_;

  DeviceQueue* device_ = nullptr;
  std::deque<Queued> queued_;
  EventPtr last_event_;  // the end of the newest settled span, and its time
  Clock::time_point last_end_, data_begin_, data_end_;
};

}  // namespace tandem

// Spans: named, timed intervals on one thread. They make the breakdown in the summary and the
// timeline of --trace.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "dist/runtime/clock.h"

namespace tandem {

enum class SpanKind : std::uint8_t {
  data,         // waiting for the next batch
  forward,      //
  backward,     //
  update,       // of the weights
  compress,     // compression, decompression and addition of gradients
  communicate,  // sending and receiving, without what counts as compress
  wait,         // the compute thread waits for the communication thread
};
inline constexpr std::array<const char*, 7> kSpanNames = {
    "data", "forward", "backward", "update", "compress", "communicate", "wait"};

// The spans of one thread. Cheap enough to stay on: two clock readings and two additions each.
class Spans {
 public:
  struct Event {
    SpanKind kind;
    std::int64_t iteration;
    Clock::time_point begin, end;
  };

  // Measures from its construction to its end. The time of a span inside another one counts for
  // the inner one alone.
  class Scope {
   public:
    Scope(Spans& spans, SpanKind kind)
        : spans_(spans),
          kind_(kind),
          outer_(std::exchange(spans.innermost_, this)),
          begin_(Clock::now()) {}
    ~Scope() {
      const auto end = Clock::now();
      const double seconds = seconds_between(begin_, end);
      spans_.seconds_[static_cast<std::size_t>(kind_)] += seconds - inside_;
      if (outer_) outer_->inside_ += seconds;
      spans_.innermost_ = outer_;
      if (spans_.keep_events_) spans_.events_.push_back({kind_, spans_.iteration_, begin_, end});
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Spans& spans_;
    SpanKind kind_;
    Scope* outer_;
    Clock::time_point begin_;
    double inside_ = 0;  // seconds that spans inside this one have taken
  };

  double seconds(SpanKind kind) const { return seconds_[static_cast<std::size_t>(kind)]; }

  // Also keeps every span, for the timeline.
  void keep_events() { keep_events_ = true; }
  const std::vector<Event>& events() const { return events_; }
  void set_iteration(std::int64_t iteration) { iteration_ = iteration; }

 private:
  std::array<double, kSpanNames.size()> seconds_{};
  Scope* innermost_ = nullptr;
  bool keep_events_ = false;
  std::int64_t iteration_ = 0;
  std::vector<Event> events_;
};

}  // namespace tandem

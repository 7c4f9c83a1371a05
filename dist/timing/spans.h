// Spans: named, timed intervals on one thread. They make the breakdown in the summary.
#pragma once

#include <array>
#include <cstddef>

#include "dist/runtime/clock.h"

namespace tandem {

enum class SpanKind { data, forward, backward, update };
inline constexpr std::array<const char*, 4> kSpanNames = {"data", "forward", "backward", "update"};

// The spans of one thread. Cheap enough to stay on: two clock readings and an addition each.
class Spans {
 public:
  // Measures from its construction to its end.
  class Scope {
   public:
    Scope(Spans& spans, SpanKind kind) : spans_(spans), kind_(kind), begin_(Clock::now()) {}
    ~Scope() {
      spans_.seconds_[static_cast<std::size_t>(kind_)] += seconds_between(begin_, Clock::now());
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Spans& spans_;
    SpanKind kind_;
    Clock::time_point begin_;
  };

  double seconds(SpanKind kind) const { return seconds_[static_cast<std::size_t>(kind)]; }

 private:
  std::array<double, kSpanNames.size()> seconds_{};
};

}  // namespace tandem

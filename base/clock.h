// The clock of strategies, transports and spans. They read time and sleep here and nowhere else, so
// that the same code can run in virtual time.
#pragma once

#include <chrono>

namespace tandem {

// The steady clock, or that of the simulation that this thread runs (virtual_time.h).
struct Clock {
  using Real = std::chrono::steady_clock;
  using rep = Real::rep;
  using duration = Real::duration;
  using time_point = Real::time_point;

  static time_point now() { return simulated ? *simulated : Real::now(); }

  static inline thread_local constinit const time_point* simulated = nullptr;
};

inline double seconds_of(Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

inline double seconds_between(Clock::time_point begin, Clock::time_point end) {
  return seconds_of(end - begin);
}

inline Clock::duration from_seconds(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

void sleep_until(Clock::time_point time);
// Ends more exactly: gives up the core only if another thread needs it.
void spin_until(Clock::time_point time);

}  // namespace tandem

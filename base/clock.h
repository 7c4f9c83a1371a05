// The clock of strategies, transports and spans. They read time and sleep here and nowhere else, so
// that the same code can run in simulated time.
#pragma once

#include <chrono>
#include <thread>

namespace tandem {

using Clock = std::chrono::steady_clock;

inline double seconds_of(Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

inline double seconds_between(Clock::time_point begin, Clock::time_point end) {
  return seconds_of(end - begin);
}

inline Clock::duration from_seconds(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

inline void sleep_until(Clock::time_point time) { std::this_thread::sleep_until(time); }

}  // namespace tandem

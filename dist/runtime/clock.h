// The clock of strategies, transports and spans. They read time here and nowhere else, so that the
// same code can run in simulated time.
#pragma once

#include <chrono>

namespace tandem {

using Clock = std::chrono::steady_clock;

inline double seconds_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

}  // namespace tandem

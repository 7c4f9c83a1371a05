#include "base/clock.h"

#include <algorithm>
#include <thread>

#include "base/virtual_time.h"

namespace tandem {

void sleep_until(Clock::time_point time) {
  if (VirtualTime* fibers = VirtualTime::here())
    fibers->wait_until(std::max(time, Clock::now()));
  else
    std::this_thread::sleep_until(time);
}

void spin_until(Clock::time_point time) {
  if (VirtualTime::here()) return sleep_until(time);
  while (Clock::now() < time) std::this_thread::yield();
}

}  // namespace tandem

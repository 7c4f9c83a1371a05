// For builds without fibers.
#include <cstdlib>

#include "base/error.h"
#include "base/virtual_time.h"

namespace tandem {

struct VirtualTime::Fiber {};

bool has_virtual_time() { return false; }

void in_virtual_time(const std::function<void()>&) {
  throw UserError("this build cannot simulate: Boost.Context (libboost-context-dev) was not found");
}

// Not reached.
VirtualTime::Fiber& VirtualTime::start(std::function<void()>) { std::abort(); }
void VirtualTime::join(Fiber&) { std::abort(); }
void VirtualTime::wait_until(Clock::time_point) { std::abort(); }
void VirtualTime::wait(Waiting&, Clock::time_point) { std::abort(); }
void VirtualTime::wake(Waiting&) { std::abort(); }
void VirtualTime::schedule(Clock::time_point, Action, void*) { std::abort(); }

}  // namespace tandem

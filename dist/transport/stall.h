// Who holds up a rank that waits.
//
// When one rank of a ring stands still, all of them wait: each for its neighbour, who is well and
// waits too. So a rank that has waited for the stall timeout asks all others what they do. Those
// that wait say for whom. The chain of who waits for whom ends at the rank that holds them up.
#pragma once

#include <span>
#include <string>

#include "dist/transport/transport.h"

namespace tandem {

// A rank holds up the job; the message says which.
class Stalled : public SystemError {
 public:
  explicit Stalled(const std::string& message) : SystemError("{}", message) {}
};

struct HeldUp {
  enum class By { silent_rank, busy_rank, each_other };
  By by;
  int rank = -1;  // which, unless they wait for each other
};
// By whom rank `self` is held up, which waits for `peer`; `signs` are those of all ranks. Where it
// waits for any rank, one that works is enough to wait for.
HeldUp held_up_by(int self, int peer, std::span<const Sign> signs);

// Waits until one of the requests is done. Throws Stalled, on one rank of the job, when that takes
// longer than the stall timeout; where `patience` says so, only when it takes that long since
// somebody was last seen to work on it.
void wait_long(Transport& transport, std::span<Request* const> requests, Patience patience);

}  // namespace tandem

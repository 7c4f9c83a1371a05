// Finds the rank that stalls a job.
//
// When one rank of a ring stalls, all ranks wait, most of them for a healthy neighbour that waits
// too. So a rank that has waited for the stall timeout asks all others what they are doing. A
// waiting rank answers which rank it waits for. The chain of waits ends at the rank that caused it.
#pragma once

#include <span>
#include <string>

#include "dist/transport/transport.h"

namespace tandem {

// The job has stalled; the message names the rank that caused it.
class Stalled : public SystemError {
 public:
  explicit Stalled(const std::string& message) : SystemError("{}", message) {}
};

struct HeldUp {
  enum class By { silent_rank, busy_rank, each_other };
  By by;
  int rank = -1;  // not set for each_other
};
// Why rank `self`, which waits for `peer`, is held up. `signs` has the states of all ranks. If a
// rank of the chain waits for any rank, a busy one counts as the cause before a silent one.
HeldUp held_up_by(int self, int peer, std::span<const Sign> signs);

// Waits until one of the requests is done. If that takes longer than the stall timeout, throws
// Stalled on one rank of the job. With Patience::while_others_work, the timeout counts from when
// another rank was last seen to work.
void wait_long(Transport& transport, std::span<Request* const> requests, Patience patience);

}  // namespace tandem

#include "dist/transport/stall.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

namespace tandem {
namespace {

// Shows the other ranks that this one waits, for the lifetime of this object.
class Shown {
 public:
  Shown(Transport& transport, int peer) : transport_(transport), sign_{Sign::State::waits, peer} {
    again();
  }
  ~Shown() { transport_.show({Sign::State::busy}); }
  Shown(const Shown&) = delete;
  Shown& operator=(const Shown&) = delete;

  void again() { transport_.show(sign_); }
  void ask(bool in_earnest) { transport_.ask(sign_, in_earnest); }

 private:
  Transport& transport_;
  Sign sign_;
};

std::string describe(const HeldUp& held_up, int self, int peer, double seconds) {
  switch (held_up.by) {
    case HeldUp::By::silent_rank:
      return fmt::format("rank {} has been silent for {:g} s (--stall-timeout); the job ends",
                         held_up.rank, seconds);
    case HeldUp::By::busy_rank:
      return fmt::format(
          "rank {} is alive, but the others have waited {:g} s for it; if it needs longer, raise "
          "--stall-timeout",
          held_up.rank, seconds);
    case HeldUp::By::each_other:
      break;
  }
  return fmt::format(
      "rank {0} has waited {2:g} s for {1} (--stall-timeout), and all ranks wait for each other",
      self, name_of_rank(peer), seconds);
}

}  // namespace

HeldUp held_up_by(int self, int peer, std::span<const Sign> signs) {
  const auto first = [&](Sign::State state) {
    for (int rank = 0; rank < std::ssize(signs); ++rank)
      if (rank != self && signs[static_cast<std::size_t>(rank)].state == state) return rank;
    return kAnyRank;
  };
  std::vector<bool> seen(signs.size());
  for (int rank = peer;;) {
    if (rank == kAnyRank) rank = first(Sign::State::busy);
    if (rank == kAnyRank) rank = first(Sign::State::silent);
    if (rank == kAnyRank || rank == self || seen[static_cast<std::size_t>(rank)])
      return {HeldUp::By::each_other};
    seen[static_cast<std::size_t>(rank)] = true;
    const Sign& sign = signs[static_cast<std::size_t>(rank)];
    if (sign.state == Sign::State::silent) return {HeldUp::By::silent_rank, rank};
    if (sign.state == Sign::State::busy) return {HeldUp::By::busy_rank, rank};
    rank = sign.waits_for;
  }
}

void wait_long(Transport& transport, std::span<Request* const> requests, Patience patience) {
  const auto slice = transport.slice();
  const double limit = transport.stall_timeout(), slice_s = seconds_of(slice);
  const double answer_s = seconds_of(transport.answer_time());
  const int self = transport.rank();
  const int peer = requests.size() == 1 ? (*requests[0])->peer : kAnyRank;
  Shown shown(transport, peer);

  // All in seconds of waiting. Time in which this process did not run does not count, so that after
  // kill -STOP and kill -CONT the others can answer first.
  double waited = slice_s, worked = 0, asked = -std::numeric_limits<double>::infinity();
  bool asking = false;
  Clock::time_point since;
  for (;;) {
    const bool over = waited - worked >= limit;
    if (over || (patience == Patience::while_others_work && waited - worked >= limit / 2)) {
      if (!asking) since = Clock::now();
      asking = true;
      if (waited - asked >= answer_s / 2) {
        shown.ask(over);
        asked = waited;
      }
    }
    const auto begin = Clock::now();
    if (transport.wait_any_until(requests, begin + slice)) return;
    waited += std::min(seconds_between(begin, Clock::now()), 2 * slice_s);
    shown.again();
    if (!asking) continue;

    const HeldUp held_up = held_up_by(self, peer, transport.signs(since));
    if (patience == Patience::while_others_work && held_up.by == HeldUp::By::busy_rank) {
      worked = waited;
      asking = false;
      continue;
    }
    if (waited - worked < limit + answer_s || transport.left_to_another()) continue;
    // Returns if a request is done after all, and throws if another rank has failed or reported
    // first.
    if (transport.wait_any_until(requests, Clock::now())) return;
    const std::string message = describe(held_up, self, peer, limit);
    transport.fail(message);
    throw Stalled(message);
  }
}

}  // namespace tandem

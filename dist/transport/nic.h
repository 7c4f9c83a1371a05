// The NIC (network card) of an emulated link. link.h says what it does. Ranks that are threads of
// one process may share one: any thread may make the calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <utility>

#include "base/clock.h"
#include "base/monitor.h"
#include "dist/transport/link_speed.h"

namespace tandem {

inline constexpr std::size_t kFrameBytes = 1500;

class Nic {
 public:
  explicit Nic(const LinkSpeed& speed) : speed_(speed) {}

  // Sends a message after those before it.
  struct Sent {
    Clock::time_point left;     // when all of it has left
    Clock::time_point arrival;  // when its first frame reaches the receiver's NIC
  };
  Sent send(std::size_t bytes);

  // Announces a message to the receiver's NIC. Returns its number there, which is not 0.
  std::uint64_t expect(Clock::time_point arrival, std::size_t bytes);
  // When all of an expected message has been received. Call it once, with a time at or after its
  // arrival. All messages that have arrived by then are received in the order of arrival.
  Clock::time_point received(std::uint64_t number, Clock::time_point now);

 private:
  struct State {
    Clock::time_point out_free{}, in_free{};  // when each direction is free again
    std::uint64_t messages = 0;               // expected so far
    // Bytes of the messages that are expected, in the order of arrival.
    std::map<std::pair<Clock::time_point, std::uint64_t>, std::size_t> expected;
    std::map<std::uint64_t, Clock::time_point> received;  // until somebody asks
  };

  Clock::duration passing_time(std::size_t bytes) const {
    return from_seconds(static_cast<double>(bytes) / speed_.bytes_per_s);
  }

  LinkSpeed speed_;
  Monitor<State> state_;
};

// By node.
using Nics = std::deque<Nic>;
// For ranks that share nodes; the last node may have fewer.
Nics nics_of_nodes(int ranks, int ranks_per_node, const LinkSpeed& speed);

}  // namespace tandem

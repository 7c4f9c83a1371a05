#include "dist/transport/nic.h"

#include <algorithm>

namespace tandem {

Nic::Sent Nic::send(std::size_t bytes) {
  return state_.change([&](State& s) -> Sent {
    const auto begin = std::max(Clock::now(), s.out_free);
    s.out_free = begin + passing_time(bytes);
    const auto frame = passing_time(std::min(bytes, kFrameBytes));
    return {s.out_free, begin + frame + from_seconds(speed_.latency_s)};
  });
}

std::uint64_t Nic::expect(Clock::time_point arrival, std::size_t bytes) {
  return state_.change([&](State& s) {
    s.expected[{arrival, ++s.messages}] = bytes;
    return s.messages;
  });
}

Clock::time_point Nic::received(std::uint64_t number, Clock::time_point now) {
  return state_.change([&](State& s) {
    while (!s.expected.empty() && s.expected.begin()->first.first <= now) {
      const auto [message, bytes] = *s.expected.begin();
      s.in_free = std::max(s.in_free, message.first) + passing_time(bytes);
      s.received[message.second] = s.in_free;
      s.expected.erase(s.expected.begin());
    }
    const auto found = s.received.find(number);
    const Clock::time_point time = found->second;
    s.received.erase(found);
    return time;
  });
}

Nics nics_of_nodes(int ranks, int ranks_per_node, const LinkSpeed& speed) {
  Nics nics;
  for (int first = 0; first < ranks; first += ranks_per_node) nics.emplace_back(speed);
  return nics;
}

}  // namespace tandem

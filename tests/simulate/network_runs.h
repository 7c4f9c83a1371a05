// Ranks over a simulated network, for its tests.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <vector>

#include "base/thread.h"
#include "base/virtual_time.h"
#include "dist/transport/link.h"
#include "simulate/network.h"

namespace tandem::test::simulated_network {

inline constexpr LinkSpeed kLink{.bytes_per_s = 1e9, .latency_s = 20e-6};
inline constexpr std::size_t kMegabyte = 1'000'000;

inline Clock::time_point at(Clock::duration since_begin) {
  return Clock::time_point{} + since_begin;
}
inline Clock::duration now() { return Clock::now().time_since_epoch(); }

// How long a NIC needs for this many bytes.
inline Clock::duration passing(std::size_t bytes, const LinkSpeed& speed = kLink) {
  return from_seconds(static_cast<double>(bytes) / speed.bytes_per_s);
}
inline Clock::duration latency(const LinkSpeed& speed = kLink) {
  return from_seconds(speed.latency_s);
}
// How long a message takes if nothing else is sent.
inline Clock::duration alone(std::size_t bytes, const LinkSpeed& speed = kLink) {
  return passing(bytes, speed) + passing(std::min(bytes, kFrameBytes), speed) + latency(speed);
}

// Runs one function per rank in virtual time, all at once.
using Ranks = std::vector<std::function<void(Transport&)>>;
template <class Network>
void run(Network& network, const Ranks& ranks) {
  in_virtual_time([&] {
    std::vector<Thread> threads;
    for (int rank = 0; rank < static_cast<int>(ranks.size()); ++rank)
      threads.push_back(start_thread("rank", Work::waits, [&network, &ranks, rank] {
        const auto transport = network.transport(rank);
        ranks[static_cast<std::size_t>(rank)](*transport);
      }));
  });
}
inline void run(const NetworkShape& shape, const Ranks& ranks) {
  SimulatedNetwork network(shape);
  run(network, ranks);
}

}  // namespace tandem::test::simulated_network

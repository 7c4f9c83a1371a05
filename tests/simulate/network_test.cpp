// How long messages take in a simulated network.
#include "simulate/network.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "base/virtual_time.h"
#include "dist/transport/collectives.h"
#include "dist/transport/link.h"
#include "tests/simulate/network_runs.h"

using namespace tandem;
using namespace tandem::test::simulated_network;
using namespace std::chrono_literals;

namespace {

constexpr LinkSpeed kSlow{.bytes_per_s = 1e8, .latency_s = 70e-6};
constexpr LinkSpeed kInner{.bytes_per_s = 8e9, .latency_s = 3e-6};

// Messages that all begin to travel at the beginning. Returns when each of them is received. Every
// pair of ranks has at most one.
struct Journey {
  int from, to;
  std::size_t bytes = kMegabyte;
};
std::vector<Clock::duration> times_of(const NetworkShape& shape,
                                      const std::vector<Journey>& journeys) {
  std::vector<Clock::duration> times(journeys.size());
  const auto rank = [&](Transport& transport) {
    Bytes memory(2 * kMegabyte);
    std::vector<Request> requests;
    for (const Journey& j : journeys)
      if (j.from == transport.rank())
        requests.push_back(transport.send(j.to, Tag::ring, std::span(memory).first(j.bytes)));
    std::map<std::size_t, Request> receives;
    for (std::size_t i = 0; i < journeys.size(); ++i)
      if (journeys[i].to == transport.rank())
        receives[i] = transport.receive(journeys[i].from, Tag::ring, memory);
    while (!receives.empty()) {
      std::vector<Request*> waiting;
      for (auto& [i, request] : receives) waiting.push_back(&request);
      transport.await_any(waiting, Patience::until_timeout);
      for (auto receive = receives.begin(); receive != receives.end();)
        if (transport.done(receive->second)) {
          times[receive->first] = now();
          receive = receives.erase(receive);
        } else {
          ++receive;
        }
    }
    for (Request& request : requests) transport.wait(request);
  };
  run(shape, Ranks(static_cast<std::size_t>(shape.ranks), rank));
  return times;
}

}  // namespace

TEST_CASE("network: a message takes bytes/rate, a frame and a latency" *
          doctest::skip(!has_virtual_time())) {
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, kFrameBytes - 1, kFrameBytes, kFrameBytes + 1, kMegabyte}) {
    CAPTURE(bytes);
    run({.ranks = 2, .link = kLink}, {[&](Transport& transport) {
                                        sleep_until(at(5ms));
                                        const Bytes memory(bytes);
                                        transport.send_and_wait(1, Tag::ring, memory);
                                        CHECK(now() == 5ms + passing(bytes));  // it has left
                                      },
                                      [&](Transport& transport) {
                                        Bytes memory(bytes);
                                        transport.receive_and_wait(0, Tag::ring, memory);
                                        CHECK(now() == 5ms + alone(bytes));
                                      }});
  }
  // By hand: 1 ns per byte.
  CHECK(std::chrono::abs(alone(kMegabyte) - (1'000'000ns + 1'500ns + 20'000ns)) <= 3ns);
}

TEST_CASE("network: each direction of a NIC carries one message at a time" *
          doctest::skip(!has_virtual_time())) {
  const NetworkShape shape{.ranks = 4, .link = kLink};
  using Times = std::vector<Clock::duration>;
  const auto one = alone(kMegabyte);
  // Two senders, one receiver.
  CHECK(times_of(shape, {{0, 2}, {1, 2}}) == Times{one, one + passing(kMegabyte)});
  // A short message waits behind a long one that arrives before it.
  CHECK(times_of(shape, {{0, 2}, {1, 2, 2000}}) == Times{one, one + passing(2000)});
  // One sender, two receivers.
  CHECK(times_of(shape, {{0, 1}, {0, 2}}) == Times{one, one + passing(kMegabyte)});
  CHECK(times_of(shape, {{0, 1, 2000}, {0, 2}}) == Times{alone(2000), one + passing(2000)});
  // Directions and pairs do not hinder each other, and the switch has room for all.
  CHECK(times_of(shape, {{0, 1}, {1, 0}, {2, 3}, {3, 2}}) == Times(4, one));
  CHECK(times_of(shape, {{0, 1}, {1, 2}, {2, 3}, {3, 0}}) == Times(4, one));
}

TEST_CASE("network: the slower of two links bounds the rate" * doctest::skip(!has_virtual_time())) {
  const NetworkShape shape{.ranks = 4, .link = kLink, .other_links = {{1, kSlow}}};
  using Times = std::vector<Clock::duration>;
  // The frame passes the other end's link at full speed. The longer latency counts.
  const auto to_slow = passing(kFrameBytes) + latency(kSlow) + passing(kMegabyte, kSlow);
  CHECK(times_of(shape, {{0, 1}}) == Times{to_slow});
  CHECK(times_of(shape, {{1, 0}}) == Times{to_slow});
  CHECK(times_of(shape, {{0, 2}}) == Times{alone(kMegabyte)});
  // The receiver's slow link does not occupy the sender's, nor the other way round.
  CHECK(times_of(shape, {{0, 1}, {0, 2}}) == Times{to_slow, alone(kMegabyte) + passing(kMegabyte)});
  CHECK(times_of(shape, {{2, 1}, {3, 1}}) == Times{to_slow, to_slow + passing(kMegabyte, kSlow)});
}

TEST_CASE("network: ranks of a node share its NIC, but not for messages among them" *
          doctest::skip(!has_virtual_time())) {
  const NetworkShape shape{.ranks = 6, .link = kLink, .ranks_per_node = 2, .inner = kInner};
  using Times = std::vector<Clock::duration>;
  const auto outer = alone(kMegabyte), inner = alone(kMegabyte, kInner);
  CHECK(times_of(shape, {{0, 1}}) == Times{inner});
  CHECK(times_of(shape, {{1, 2}}) == Times{outer});
  // Inner messages do not occupy the node's NIC.
  CHECK(times_of(shape, {{0, 1}, {0, 2}, {1, 0}, {3, 1}}) == Times{inner, outer, inner, outer});
  // Outer messages share it, when they are sent and when they are received.
  CHECK(times_of(shape, {{0, 2}, {1, 4}}) == Times{outer, outer + passing(kMegabyte)});
  CHECK(times_of(shape, {{2, 0}, {4, 1}}) == Times{outer, outer + passing(kMegabyte)});

  run(shape, Ranks(6, [](Transport& transport) {
        for (int rank = 0; rank < 6; ++rank) CHECK(transport.node(rank) == rank / 2);
      }));
}

TEST_CASE("network: guests use the NICs of the nodes on which they are" *
          doctest::skip(!has_virtual_time())) {
  // Ranks 0, 1, 4 and 6 share a node; 2, 3 and 5 share the other one.
  const NetworkShape shape{
      .ranks = 7, .link = kLink, .ranks_per_node = 2, .inner = kInner, .guests_from = 4};
  using Times = std::vector<Clock::duration>;
  const auto outer = alone(kMegabyte), inner = alone(kMegabyte, kInner);
  CHECK(times_of(shape, {{0, 4}, {6, 1}, {5, 3}}) == Times{inner, inner, inner});
  CHECK(times_of(shape, {{0, 5}}) == Times{outer});
  CHECK(times_of(shape, {{0, 2}, {4, 3}}) == Times{outer, outer + passing(kMegabyte)});
  CHECK(times_of(shape, {{2, 0}, {5, 6}}) == Times{outer, outer + passing(kMegabyte)});
  // Without nodes of several ranks, too.
  const NetworkShape alone_with_guest{.ranks = 3, .link = kLink, .guests_from = 2};
  CHECK(times_of(alone_with_guest, {{0, 2}, {2, 1}}) == Times{0s, outer});

  run(shape, Ranks(7, [](Transport& transport) {
        for (int rank = 0; rank < 7; ++rank)
          CHECK(transport.node(rank) ==
                std::vector{0, 0, 1, 1, 0, 1, 0}.at(static_cast<std::size_t>(rank)));
      }));
}

TEST_CASE(
    "network: an inner link may be unlimited, and a slow link is that of all ranks of a node" *
    doctest::skip(!has_virtual_time())) {
  const NetworkShape shape{
      .ranks = 4, .link = kLink, .other_links = {{1, kSlow}}, .ranks_per_node = 2};
  using Times = std::vector<Clock::duration>;
  const auto slow = passing(kFrameBytes) + latency(kSlow) + passing(kMegabyte, kSlow);
  CHECK(times_of(shape, {{0, 1}, {2, 3}}) == Times{0s, 0s});
  CHECK(times_of(shape, {{0, 2}}) == Times{slow});
  CHECK(times_of(shape, {{2, 1}}) == Times{slow});
}

TEST_CASE("network: an unlimited link takes no time" * doctest::skip(!has_virtual_time())) {
  CHECK(times_of({.ranks = 3}, {{0, 1}, {1, 0}, {0, 2}, {2, 1}}) ==
        std::vector<Clock::duration>(4, 0s));
}

TEST_CASE("network: the use of a NIC adds up" * doctest::skip(!has_virtual_time())) {
  SimulatedNetwork network({.ranks = 3, .link = kLink});
  network.note_use();
  constexpr std::size_t kSent[] = {400'000, 3'000, 0, 1'000'000}, kReceived = 250'000;
  run(network,
      {[&](Transport& transport) {
         Bytes memory(kMegabyte), other(kMegabyte);
         std::vector<Request> requests;
         for (const std::size_t bytes : kSent)
           requests.push_back(transport.send(1, Tag::ring, std::span(memory).first(bytes)));
         for (const int from : {1, 2})
           requests.push_back(transport.receive(from, Tag::push, other));
         for (Request& request : requests) transport.wait(request);
       },
       [&](Transport& transport) {
         Bytes memory(kMegabyte);
         const Bytes own(kReceived);
         Request send = transport.send(0, Tag::push, own);
         for (std::size_t i = 0; i < std::size(kSent); ++i)
           transport.receive_and_wait(0, Tag::ring, memory);
         transport.wait(send);
       },
       [&](Transport& transport) { transport.send_and_wait(0, Tag::push, Bytes(kReceived)); }});
  Clock::duration sends{}, receives{};
  Clock::time_point sent, received;
  for (const auto& [out, begin, end] : network.use()) {
    Clock::time_point& last = out ? sent : received;
    CHECK(begin >= last);  // intervals of a direction do not overlap
    CHECK(end > begin);    // empty messages do not count
    last = end;
    (out ? sends : receives) += end - begin;
  }
  CHECK(network.use().size() == 5);
  CHECK(sends == passing(400'000) + passing(3'000) + passing(1'000'000));
  CHECK(sent == at(sends));  // without a gap
  CHECK(receives == 2 * passing(kReceived));
  CHECK(received == at(alone(kReceived) + passing(kReceived)));
}

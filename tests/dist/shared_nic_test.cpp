// Ranks that share nodes over an emulated link.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "base/thread.h"
#include "base/virtual_time.h"
#include "dist/launch.h"
#include "dist/transport/link.h"

using namespace tandem;
using namespace std::chrono_literals;

namespace {

constexpr LinkSpeed kLink{.bytes_per_s = 1e9, .latency_s = 20e-6};
constexpr std::size_t kMegabyte = 1'000'000;

constexpr Clock::duration kPassing = 1ms;  // of a megabyte
// A message that nothing delays.
constexpr Clock::duration kAlone = kPassing + 1500ns + 20us;

using Times = std::vector<Clock::duration>;

// When each message of a megabyte is there, if all are sent at the same time; in the order of the
// list where two ranks of a node send.
Times times_of(const RankOptions& options, const std::vector<std::pair<int, int>>& messages) {
  Times times(messages.size());
  in_virtual_time([&] {
    run_on_ranks(options, [&](Communication& communication) {
      communication.call([&] {
        Transport& transport = communication.transport();
        const Clock::time_point begin{1s};  // after the ranks have compared their clocks
        std::vector<std::byte> memory(kMegabyte);
        std::vector<Request> sent, received(messages.size());
        for (std::size_t i = 0; i < messages.size(); ++i)
          if (messages[i].second == transport.rank())
            received[i] = transport.receive(messages[i].first, Tag::ring, memory);
        for (std::size_t i = 0; i < messages.size(); ++i)
          if (messages[i].first == transport.rank()) {
            sleep_until(begin + std::chrono::nanoseconds(i));
            sent.push_back(transport.send(messages[i].second, Tag::ring, memory));
          }
        for (;;) {
          std::vector<Request*> open;
          for (Request& request : received)
            if (request) open.push_back(&request);
          if (open.empty()) break;
          transport.await_any(open, Patience::until_timeout);
          for (std::size_t i = 0; i < messages.size(); ++i)
            if (received[i] && transport.done(received[i])) {
              times[i] = Clock::now() - begin - std::chrono::nanoseconds(i);
              received[i].reset();
            }
        }
        for (Request& request : sent) transport.wait(request);
      });
    });
  });
  return times;
}

RankOptions on_nodes(int ranks, int ranks_per_node) {
  return {.app = "test", .ranks = ranks, .link = kLink, .ranks_per_node = ranks_per_node};
}

}  // namespace

TEST_CASE("link: ranks of a node share its NIC, but not for messages among them" *
          doctest::skip(!has_virtual_time())) {
  const auto times = [](const std::vector<std::pair<int, int>>& messages) {
    return times_of(on_nodes(5, 2), messages);
  };
  CHECK(times({{1, 2}}) == Times{kAlone});
  CHECK(times({{0, 1}, {3, 2}}) == Times{0s, 0s});
  // One message waits for the other, when they are sent and when they are received.
  CHECK(times({{0, 2}, {1, 4}}) == Times{kAlone, kAlone + kPassing - 1ns});
  CHECK(times({{2, 0}, {4, 1}}) == Times{kAlone, kAlone + kPassing - 1ns});
  // The two directions are independent, and messages within the node do not pass the NIC.
  CHECK(times({{0, 2}, {4, 1}, {1, 0}}) == Times{kAlone, kAlone, 0s});
  // The last node has one rank.
  CHECK(times({{4, 3}, {4, 1}}) == Times{kAlone, kAlone + kPassing - 1ns});
}

TEST_CASE("link: without shared nodes, every rank has a NIC of its own" *
          doctest::skip(!has_virtual_time())) {
  for (const int ranks_per_node : {0, 1}) {
    const RankOptions options = on_nodes(5, ranks_per_node);
    CHECK(times_of(options, {{0, 1}}) == Times{kAlone});
    CHECK(times_of(options, {{0, 2}, {1, 4}}) == Times{kAlone, kAlone});
    CHECK(times_of(options, {{2, 0}, {4, 1}}) == Times{kAlone, kAlone});
  }
}

TEST_CASE("nodes: consecutive ranks share one, with and without a link") {
  for (const LinkSpeed& link : {LinkSpeed{}, kLink})
    for (const int ranks_per_node : {0, 1, 2, 5, 8})
      run_on_ranks({.app = "test", .ranks = 5, .link = link, .ranks_per_node = ranks_per_node},
                   [&](Communication& communication) {
                     const Transport& transport = communication.transport();
                     for (int rank = 0; rank < 5; ++rank) {
                       CHECK(transport.node(rank) == rank / std::max(1, ranks_per_node));
                       CHECK(transport.machine(rank) == 0);  // they have one clock
                     }
                     CHECK(transport.on_one_node() == !link.limited());
                   });
}

// A simulated network beside the link that real runs emulate.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/thread.h"
#include "base/virtual_time.h"
#include "dist/transport/collectives.h"
#include "dist/transport/link.h"
#include "dist/transport/threads.h"
#include "simulate/network.h"
#include "tests/simulate/network_runs.h"

using namespace tandem;
using namespace tandem::test::simulated_network;
using namespace std::chrono_literals;

namespace {

struct Sending {
  Clock::duration time;
  int to;
  Tag tag;
  std::size_t bytes;
};
using Sendings = std::vector<std::vector<Sending>>;  // by rank, in the order of time

// No message is empty: it could arrive at the same time as the one before it, and the two networks
// do not order such messages in the same way.
Sendings random_sendings(int ranks, std::uint64_t seed) {
  Random random(seed);
  Sendings all(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    auto& of_rank = all[static_cast<std::size_t>(rank)];
    for (int i = 0; i < 40; ++i) {
      const std::size_t longest = std::array{20UL, 3'000UL, 200'000UL}[random.below(3)];
      of_rank.push_back(
          {.time = std::chrono::nanoseconds(random.below(3'000'000)),
           .to =
               (rank + 1 + static_cast<int>(random.below(static_cast<std::uint64_t>(ranks - 1)))) %
               ranks,
           .tag = random.below(2) ? Tag::ring : Tag::push,
           .bytes = 1 + random.below(longest)});
    }
    std::ranges::sort(of_rank, {}, &Sending::time);
  }
  return all;
}

// When each send and each receive was done, rank by rank, with the sender and the size of each
// message. Receives with the tag `push` take messages from any rank.
using Done = std::vector<std::tuple<Clock::duration, int, std::size_t>>;
Done exchange(Transport& transport, const Sendings& all, Clock::duration begin) {
  const int rank = transport.rank();
  std::vector<Request> requests;
  Bytes memory(200'000);
  for (int from = 0; from < static_cast<int>(all.size()); ++from)
    for (const Sending& sending : all[static_cast<std::size_t>(from)])
      if (sending.to == rank)
        requests.push_back(
            transport.receive(sending.tag == Tag::push ? kAnyRank : from, sending.tag, memory));
  const std::size_t receives = requests.size();
  const auto& own = all[static_cast<std::size_t>(rank)];
  Done done(receives + own.size());
  for (std::size_t left = done.size(); left > 0;) {
    std::vector<Request*> waiting;
    for (Request& request : requests)
      if (request) waiting.push_back(&request);
    const std::size_t next = requests.size() - receives;
    const auto until = next < own.size() ? at(begin + own[next].time) : at(1h);
    transport.wait_any_until(waiting, until);
    for (std::size_t i = 0; i < requests.size(); ++i)
      if (requests[i] && transport.done(requests[i])) {
        done[i] = {now() - begin, requests[i]->source, requests[i]->bytes};
        requests[i].reset();
        --left;
      }
    if (next < own.size() && Clock::now() >= until)
      requests.push_back(
          transport.send(own[next].to, own[next].tag, std::span(memory).first(own[next].bytes)));
  }
  return done;
}

}  // namespace

TEST_CASE("network: messages take as long as over an emulated link, to the nanosecond" *
          doctest::skip(!has_virtual_time())) {
  for (const auto& [ranks, ranks_per_node] :
       {std::pair(3, 1), std::pair(4, 1), std::pair(4, 2), std::pair(5, 2), std::pair(6, 3)})
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      CAPTURE(ranks);
      CAPTURE(ranks_per_node);
      CAPTURE(seed);
      const Sendings all = random_sendings(ranks, seed);
      std::vector<Done> simulated(all.size()), emulated(all.size());
      const auto begin = 1s;  // after the emulated link has compared clocks
      const auto into = [&](std::vector<Done>& done) {
        return [&](Transport& transport) {
          sleep_until(at(begin));
          done[static_cast<std::size_t>(transport.rank())] = exchange(transport, all, begin);
        };
      };
      run({.ranks = ranks, .link = kLink, .ranks_per_node = ranks_per_node},
          Ranks(all.size(), into(simulated)));

      ThreadsNetwork threads(ranks);
      Nics nics = nics_of_nodes(ranks, ranks_per_node, kLink);
      in_virtual_time([&] {
        std::vector<Thread> of_ranks;
        for (int rank = 0; rank < ranks; ++rank)
          of_ranks.push_back(start_thread("rank", Work::waits, [&, rank] {
            auto transport = threads.transport(rank);
            transport->set_ranks_per_node(ranks_per_node);
            transport =
                slow_down(std::move(transport), kLink, ranks_per_node > 1 ? &nics : nullptr);
            into(emulated)(*transport);
          }));
      });
      CHECK(simulated == emulated);
    }
}

#include "simulate/network.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/thread.h"
#include "base/virtual_time.h"
#include "dist/transport/collectives.h"
#include "dist/transport/link.h"
#include "dist/transport/threads.h"
#include "tests/support.h"

using namespace tandem;
using namespace tandem::test;
using namespace std::chrono_literals;

namespace {

constexpr LinkSpeed kLink{.bytes_per_s = 1e9, .latency_s = 20e-6};
constexpr LinkSpeed kSlow{.bytes_per_s = 1e8, .latency_s = 70e-6};
constexpr LinkSpeed kInner{.bytes_per_s = 8e9, .latency_s = 3e-6};
constexpr std::size_t kMegabyte = 1'000'000;

Clock::time_point at(Clock::duration since_begin) { return Clock::time_point{} + since_begin; }
Clock::duration now() { return Clock::now().time_since_epoch(); }

// How long a NIC needs for this many bytes.
Clock::duration passing(std::size_t bytes, const LinkSpeed& speed = kLink) {
  return from_seconds(static_cast<double>(bytes) / speed.bytes_per_s);
}
Clock::duration latency(const LinkSpeed& speed = kLink) { return from_seconds(speed.latency_s); }
// How long a message takes if nothing else is sent.
Clock::duration alone(std::size_t bytes, const LinkSpeed& speed = kLink) {
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
void run(const NetworkShape& shape, const Ranks& ranks) {
  SimulatedNetwork network(shape);
  run(network, ranks);
}

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

Bytes bytes_of(const std::string& text) {
  Bytes bytes(text.size());
  std::ranges::transform(text, bytes.begin(), [](char c) { return static_cast<std::byte>(c); });
  return bytes;
}
std::string text_of(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes) text += static_cast<char>(byte);
  return text;
}

void send_text(Transport& transport, int to, const std::string& text, Tag tag = Tag::ring) {
  transport.send_and_wait(to, tag, bytes_of(text));
}
// The text of the next message, and its sender.
std::pair<std::string, int> receive_text(Transport& transport, int from, Tag tag = Tag::ring) {
  Bytes memory(100);
  Request request = transport.receive(from, tag, memory);
  transport.await(request);
  return {text_of(request->message()), request->source};
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

TEST_CASE("network: a receive that is posted late is done at once" *
          doctest::skip(!has_virtual_time())) {
  run({.ranks = 2, .link = kLink}, {[](Transport& transport) {
                                      send_text(transport, 1, "early");
                                      // Until it is received, its memory may be read.
                                      CHECK(now() == 1s);
                                    },
                                    [](Transport& transport) {
                                      sleep_until(at(1s));
                                      CHECK(receive_text(transport, 0).first == "early");
                                      CHECK(now() == 1s);
                                    }});
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

TEST_CASE("network: messages of one tag keep their order, tags do not wait for each other" *
          doctest::skip(!has_virtual_time())) {
  for (const auto posted : {0ms, 50ms}) {
    CAPTURE(posted.count());
    run({.ranks = 2, .link = kLink},
        {[](Transport& transport) {
           const Bytes one = bytes_of("one"), two = bytes_of("two");
           const Bytes other = bytes_of("other");
           Request sends[] = {transport.send(1, Tag::ring, one), transport.send(1, Tag::ring, two),
                              transport.send(1, Tag::push, other)};
           for (Request& send : sends) transport.wait(send);
         },
         [&](Transport& transport) {
           sleep_until(at(posted));
           CHECK(receive_text(transport, 0, Tag::push).first == "other");
           CHECK(receive_text(transport, 0).first == "one");
           CHECK(receive_text(transport, 0).first == "two");
         }});
  }
}

TEST_CASE("network: a receive from any rank takes the oldest message" *
          doctest::skip(!has_virtual_time())) {
  for (const auto posted : {0us, 500us}) {
    CAPTURE(posted.count());
    std::vector<int> sources;
    const auto sender = [](Transport& transport) {
      sleep_until(at(transport.rank() * 10us));
      send_text(transport, 0, std::to_string(transport.rank()));
    };
    run({.ranks = 4, .link = kLink}, {[&](Transport& transport) {
                                        sleep_until(at(posted));
                                        const auto [text, source] = receive_text(transport, 2);
                                        CHECK(text == "2");
                                        CHECK(source == 2);
                                        for (const int expected : {1, 3}) {
                                          const auto any = receive_text(transport, kAnyRank);
                                          CHECK(any.first == std::to_string(expected));
                                          CHECK(any.second == expected);
                                        }
                                      },
                                      sender, sender, sender});
  }
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

TEST_CASE("network: content arrives" * doctest::skip(!has_virtual_time())) {
  for (const LinkSpeed& link : {kLink, LinkSpeed{}})
    for (const bool early : {false, true}) {
      CAPTURE(early);
      run({.ranks = 2, .link = link},
          {[&](Transport& transport) {
             if (early) sleep_until(at(10ms));
             send_text(transport, 1, "shorter than its receive");
           },
           [&](Transport& transport) {
             if (!early) sleep_until(at(10ms));
             Bytes memory = bytes_of(std::string(40, '.'));
             Request request = transport.receive(0, Tag::ring, memory);
             transport.await(request);
             CHECK(text_of(request->message()) == "shorter than its receive");
             CHECK(request->data == memory.data());
             CHECK(text_of(memory) == "shorter than its receive................");
           }});
    }
}

TEST_CASE("network: a message that is read in place ends with its receive" *
          doctest::skip(!has_virtual_time())) {
  const Bytes sent = bytes_of("read here");
  for (const bool early : {false, true}) {
    CAPTURE(early);
    run({.ranks = 2, .link = kLink},
        {[&](Transport& transport) {
           if (early) sleep_until(at(1ms));
           Request send = transport.send(1, Tag::ring, sent);
           Request* const sends[] = {&send};
           CHECK_FALSE(transport.wait_any_until(sends, at(7ms)));  // it is being read
           transport.wait(send);
           CHECK(now() == 12ms);
         },
         [&](Transport& transport) {
           if (!early) sleep_until(at(1ms));
           Bytes memory = bytes_of(std::string(40, '.'));
           Request request = transport.receive_in_place(0, Tag::ring, memory);
           transport.await(request);
           CHECK(now() == (early ? 1ms + alone(sent.size()) : 1ms));
           CHECK(request->data == sent.data());
           CHECK(text_of(request->message()) == "read here");
           CHECK(text_of(memory) == std::string(40, '.'));
           sleep_until(at(10ms));
           VirtualTime::here()->work(2ms);  // reads
           request.reset();
         }});
  }
}

TEST_CASE("network: a receive in place can keep the sender's memory" *
          doctest::skip(!has_virtual_time())) {
  Storage kept;
  run({.ranks = 2, .link = kLink},
      {[&](Transport& transport) {
         const Storage memory(cpu_device(), 8);
         std::ranges::fill(std::span(memory.data(), 8), std::byte{7});
         Request send = transport.send(1, Tag::push, std::span(memory.data(), 8), memory);
         transport.wait(send);
       },
       [&](Transport& transport) {
         Bytes own(8);
         Request request = transport.receive_in_place(0, Tag::push, own);
         transport.await(request);
         kept = request->owner;
       }});
  CHECK(std::ranges::count(std::span(kept.data(), 8), std::byte{7}) == 8);
}

TEST_CASE("network: waits end at their time, or when another thread wakes them" *
          doctest::skip(!has_virtual_time())) {
  run({.ranks = 2, .link = kLink}, {[](Transport& transport) {
                                      Bytes memory(1);
                                      Request never = transport.receive(1, Tag::ring, memory);
                                      Request* const requests[] = {&never};
                                      CHECK_FALSE(transport.wait_any_until(requests, at(3ms)));
                                      CHECK(now() == 3ms);
                                      const Thread other =
                                          start_thread("waker", Work::waits, [&transport] {
                                            sleep_until(at(5ms));
                                            transport.wake();
                                            sleep_until(at(7ms));
                                            transport.wake();  // before the wait
                                          });
                                      CHECK_FALSE(transport.wait_any_until(requests, at(1h)));
                                      CHECK(now() == 5ms);
                                      sleep_until(at(8ms));
                                      CHECK_FALSE(transport.wait_any_until(requests, at(1h)));
                                      CHECK(now() == 8ms);
                                    },
                                    [](Transport&) {}});
}

TEST_CASE("network: a failure ends all waits, and only the first reason counts" *
          doctest::skip(!has_virtual_time())) {
  for (const bool by_transport : {false, true}) {
    SimulatedNetwork network({.ranks = 3, .link = kLink});
    const auto waits = [](Transport& transport) {
      Bytes memory(1);
      const auto fails = [&](auto&& f) { CHECK(message_of<JobFailed>(f) == "no more"); };
      fails([&] { transport.receive_and_wait(0, Tag::ring, memory); });
      CHECK(now() == 1ms);
      // So does what begins later.
      sleep_until(at(3ms));
      fails([&] { transport.receive_and_wait(0, Tag::ring, memory); });
      fails([&] { transport.send_and_wait(0, Tag::ring, memory); });
    };
    run(network, {[&](Transport& transport) {
                    const auto fail = [&](const std::string& reason) {
                      by_transport ? transport.fail(reason) : network.fail(reason);
                    };
                    sleep_until(at(1ms));
                    fail("no more");
                    sleep_until(at(2ms));
                    fail("something else");
                  },
                  waits, waits});
  }
}

TEST_CASE("network: a message must fit into its receive" * doctest::skip(!has_virtual_time())) {
  constexpr const char* kText = "rank 0 sent 5 bytes to rank 1, which expects 4";
  for (const bool early : {false, true}) {
    CAPTURE(early);
    run({.ranks = 2, .link = kLink},
        {[&](Transport& transport) {
           const Bytes memory(5);
           if (early) {
             sleep_until(at(1ms));
             CHECK(message_of<std::logic_error>([&] { transport.send(1, Tag::ring, memory); }) ==
                   kText);
           } else {
             const Request send = transport.send(1, Tag::ring, memory);
             sleep_until(at(2ms));
           }
         },
         [&](Transport& transport) {
           Bytes memory(4);
           if (early) {
             const Request receive = transport.receive(0, Tag::ring, memory);
             sleep_until(at(2ms));
             CHECK_FALSE(transport.done(receive));
           } else {
             sleep_until(at(1ms));
             CHECK(message_of<std::logic_error>([&] { transport.receive(0, Tag::ring, memory); }) ==
                   kText);
           }
         }});
  }
}

TEST_CASE("network: a rank that does not exist cannot be addressed" *
          doctest::skip(!has_virtual_time())) {
  run({.ranks = 2, .link = kLink},
      {[](Transport& transport) {
         Bytes memory(1);
         for (const int peer : {0, 2, -2}) {
           CHECK_THROWS_AS(transport.send(peer, Tag::ring, memory), std::logic_error);
           CHECK_THROWS_AS(transport.receive(peer, Tag::ring, memory), std::logic_error);
         }
         CHECK_THROWS_AS(transport.send(kAnyRank, Tag::ring, memory), std::logic_error);
       },
       [](Transport&) {}});
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
  for (const int ranks : {3, 4})
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      CAPTURE(ranks);
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
      run({.ranks = ranks, .link = kLink}, Ranks(all.size(), into(simulated)));

      ThreadsNetwork threads(ranks);
      in_virtual_time([&] {
        std::vector<Thread> of_ranks;
        for (int rank = 0; rank < ranks; ++rank)
          of_ranks.push_back(start_thread("rank", Work::waits, [&, rank] {
            const auto transport = slow_down(threads.transport(rank), kLink);
            into(emulated)(*transport);
          }));
      });
      CHECK(simulated == emulated);
    }
}

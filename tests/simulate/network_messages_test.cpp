// Which message a receive gets in a simulated network, what it holds, and how waits end.
#include <doctest/doctest.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/thread.h"
#include "base/virtual_time.h"
#include "dist/transport/collectives.h"
#include "simulate/network.h"
#include "tests/simulate/network_runs.h"
#include "tests/support.h"

using namespace tandem;
using namespace tandem::test;
using namespace tandem::test::simulated_network;
using namespace std::chrono_literals;

namespace {

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

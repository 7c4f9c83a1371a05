#include "dist/transport/transport.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "dist/transport/collectives.h"
#include "dist/transport/link.h"
#include "tensor/backend.h"
#include "tests/dist/ranks.h"
#include "tests/support.h"

using namespace tandem;
using namespace tandem::test;

namespace {

std::span<const std::byte> bytes_of(const int& value) {
  return std::as_bytes(std::span(&value, 1));
}
std::span<std::byte> bytes_of(int& value) { return std::as_writable_bytes(std::span(&value, 1)); }

// Runs the body over threads as they are and over threads behind a link: the contract is the same.
void over_threads_and_link(int size, const std::function<void(Transport&)>& body) {
  on_ranks(size, body);
  on_ranks(size, body, parse_link("1gbit/20us"));
}

}  // namespace

TEST_CASE("transport: messages with one tag keep their order, tags are kept apart") {
  over_threads_and_link(2, [](Transport& t) {
    std::array<int, 4> values{};
    if (t.rank() == 0) {
      values = {1, 2, 3, 4};
      std::vector<Request> sent;
      for (const int& v : {std::cref(values[0]), std::cref(values[1]), std::cref(values[2])})
        sent.push_back(t.send(1, Tag::ring, bytes_of(v)));
      sent.push_back(t.send(1, Tag::push, bytes_of(std::as_const(values[3]))));
      for (Request& request : sent) CHECK(t.wait(request) == 1);
    } else {
      CHECK(t.receive_and_wait(0, Tag::push, bytes_of(values[3])) == 0);
      for (int i = 0; i < 3; ++i)
        t.receive_and_wait(0, Tag::ring, bytes_of(values[static_cast<std::size_t>(i)]));
      CHECK(values == std::array<int, 4>{1, 2, 3, 4});
    }
  });
}

TEST_CASE("transport: a receive from any rank takes every message once and names the sender") {
  over_threads_and_link(5, [](Transport& t) {
    if (t.rank() > 0)
      return t.send_and_wait(0, Tag::push,
                             bytes_of(std::as_const(*std::make_unique<int>(10 * t.rank()))));
    int seen = 0;
    for (int i = 1; i < 5; ++i) {
      int value = 0;
      const int from = t.receive_and_wait(kAnyRank, Tag::push, bytes_of(value));
      CHECK(value == 10 * from);
      seen += value;
    }
    CHECK(seen == 100);
  });
}

TEST_CASE("transport: empty messages, and messages shorter than expected") {
  over_threads_and_link(2, [](Transport& t) {
    if (t.rank() == 0) {
      t.send_and_wait(1, Tag::ring, {});
      t.send_and_wait(1, Tag::ring, bytes_of(7));
    } else {
      std::array<int, 3> values{1, 2, 3};
      t.receive_and_wait(0, Tag::ring, {});
      Request request = t.receive(0, Tag::ring, std::as_writable_bytes(std::span(values)));
      Request* const one[] = {&request};
      REQUIRE(t.wait_any_until(one, Clock::now() + std::chrono::seconds(10)));
      CHECK(request->bytes == sizeof(int));
      CHECK(values == std::array<int, 3>{7, 2, 3});
    }
  });
}

TEST_CASE("transport: a receiver may keep the memory of a message that was sent with it") {
  over_threads_and_link(2, [](Transport& t) {
    constexpr std::size_t kBytes = 5000;
    if (t.rank() == 0) {
      Storage memory(cpu_device(), kBytes);
      const std::span<std::byte> bytes(memory.data(), kBytes);
      std::ranges::fill(bytes, std::byte{7});
      Request request = t.send(1, Tag::push, bytes, memory);
      memory = {};
      t.wait(request);  // although the receiver still has the message
      t.send_and_wait(1, Tag::control, {});
    } else {
      std::vector<std::byte> own(kBytes);
      Request request = t.receive_in_place(0, Tag::push, own);
      t.await(request);
      const Storage kept = request->owner;
      REQUIRE(bool(kept));
      CHECK(request->data == kept.data());
      request.reset();
      t.receive_and_wait(0, Tag::control, {});
      const std::span<const std::byte> bytes(kept.data(), kBytes);
      CHECK(std::ranges::count(bytes, std::byte{7}) == kBytes);
      CHECK_FALSE(kept.shared());
    }
  });
}

TEST_CASE("transport: a wait ends at the stall timeout and names the silent rank") {
  const auto message = [](const std::function<void(Transport&, int&)>& wait) {
    std::string text;
    const auto body = [&](Transport& t) {
      if (t.rank() == 1) return;
      t.set_stall_timeout(0.05);
      int value = 0;
      const auto begin = Clock::now();
      text = message_of<SystemError>([&] { wait(t, value); });
      CHECK(seconds_between(begin, Clock::now()) >= 0.05);
    };
    on_ranks(2, body);
    const std::string over_threads = std::exchange(text, "");
    on_ranks(2, body, parse_link("1gbit/20us"));
    CHECK(text == over_threads);
    return text;
  };
  const std::string silent = "rank 1 has been silent for 0.05 s (--stall-timeout); the job ends";
  CHECK(message([](Transport& t, int& v) { t.receive_and_wait(1, Tag::ring, bytes_of(v)); }) ==
        silent);
  CHECK(message([](Transport& t, int& v) {
          t.receive_and_wait(kAnyRank, Tag::ring, bytes_of(v));
        }) == silent);
  CHECK(message([](Transport& t, int& v) { t.send_and_wait(1, Tag::ring, bytes_of(v)); }) ==
        silent);
}

TEST_CASE("transport: a cancelled request leaves nothing behind") {
  over_threads_and_link(2, [](Transport& t) {
    int value = 0;
    if (t.rank() == 0) {
      { const Request gone = t.receive(1, Tag::ring, bytes_of(value)); }
      barrier(t, 2);
      t.receive_and_wait(1, Tag::ring, bytes_of(value));
      CHECK(value == 5);
    } else {
      barrier(t, 2);
      t.send_and_wait(0, Tag::ring, bytes_of(5));
    }
  });
}

TEST_CASE("transport: when one rank fails, the waits of all others end with its reason") {
  ThreadsNetwork network(3);
  std::vector<std::string> messages(3);
  {
    std::vector<Thread> threads;
    for (int rank = 0; rank < 2; ++rank)
      threads.push_back(start_thread("rank", Work::waits, [&, rank] {
        const auto t = network.transport(rank);
        int value = 0;
        messages[static_cast<std::size_t>(rank)] =
            message_of<SystemError>([&] { t->receive_and_wait(2, Tag::ring, bytes_of(value)); });
      }));
    network.transport(2)->fail("rank 2 failed: no more");
    network.fail("a later reason");
  }
  CHECK(messages[0] == "rank 2 failed: no more");
  CHECK(messages[1] == "rank 2 failed: no more");
}

TEST_CASE("transport: a message that is too long is a broken contract") {
  CHECK_THROWS_AS(on_ranks(2,
                           [](Transport& t) {
                             std::array<int, 2> values{};
                             if (t.rank() == 0)
                               t.send_and_wait(1, Tag::ring, std::as_bytes(std::span(values)));
                             else
                               t.receive_and_wait(0, Tag::ring, bytes_of(values[0]));
                           }),
                  std::exception);
}

TEST_CASE("transport: totals, barriers and gathered bytes") {
  over_threads_and_link(4, [](Transport& t) {
    double values[] = {1, static_cast<double>(t.rank())};
    sum_over_ranks(t, 4, values);
    CHECK(values[0] == 4);
    CHECK(values[1] == 6);
    barrier(t, 4);
    const auto all = gather(t, 4, Bytes(static_cast<std::size_t>(t.rank()), std::byte(t.rank())));
    CHECK(all.size() == (t.rank() == 0 ? 4 : 0));
    for (std::size_t r = 0; r < all.size(); ++r) CHECK(all[r] == Bytes(r, std::byte(r)));
  });
}

TEST_CASE("link: speeds are parsed, and invalid ones are refused with an example") {
  CHECK(!parse_link("none").limited());
  CHECK(parse_link("1gbe").bytes_per_s == 125e6);
  CHECK(parse_link("100gbe").bytes_per_s == 12.5e9);
  CHECK(parse_link("2.5gbit/80us").bytes_per_s == doctest::Approx(312.5e6));
  CHECK(parse_link("2.5gbit/80us").latency_s == doctest::Approx(80e-6));
  CHECK(parse_link("10mbit").latency_s == 0);
  for (const char* wrong :
       {"", "fast", "1", "1gb", "gbit", "-1gbit", "0gbit", "1gbit/", "1gbit/5", "nangbit",
        "infgbit", "1gbit/-1us", "1gbit/1h", "1gbit/20us/3", "1e99gbit", " 1gbit"}) {
    CAPTURE(wrong);
    CHECK(message_of<UserError>([&] { parse_link(wrong); }).find("such as 2.5gbit/80us") !=
          std::string::npos);
  }
}

// Timing is only tested from below here: a link is never faster than it says. That it is not much
// slower either is measured by build/bench_link.
TEST_CASE("link: neither direction of a NIC exceeds its rate") {
  const LinkSpeed speed = parse_link("80mbit/1ms");  // 10 bytes in a microsecond
  constexpr std::size_t kBytes = 100'000;            // 10 ms
  const auto elapsed = [&](int ranks, const std::function<void(Transport&)>& body) {
    const auto begin = Clock::now();
    on_ranks(ranks, body, speed);
    return seconds_between(begin, Clock::now());
  };
  const auto send = [](Transport& t, int to) {
    t.send_and_wait(to, Tag::ring, std::vector<std::byte>(kBytes));
  };
  const auto receive = [](Transport& t, int from) {
    std::vector<std::byte> bytes(kBytes);
    t.receive_and_wait(from, Tag::ring, bytes);
  };
  // One message: out and in overlap but for a frame, then the latency.
  CHECK(elapsed(2, [&](Transport& t) { t.rank() == 0 ? send(t, 1) : receive(t, 0); }) >= 0.01115);
  // Three senders: the receiver's card takes one after the other.
  CHECK(elapsed(4, [&](Transport& t) {
          if (t.rank() > 0) return send(t, 0);
          for (int i = 0; i < 3; ++i) receive(t, kAnyRank);
        }) >= 0.03115);
  // Three receivers: the sender's card sends one after the other.
  CHECK(elapsed(4, [&](Transport& t) {
          if (t.rank() > 0) return receive(t, 0);
          for (int i = 1; i < 4; ++i) send(t, i);
        }) >= 0.03115);
}

TEST_CASE("link: ranks that start together hear from all others that they are ready to") {
  const auto body = [](Transport& t) {
    const auto begin = Clock::now();
    start_together(t, 4);
    CHECK(seconds_between(begin, Clock::now()) >= 2 * 20e-3);  // rank 0 leaves barrier() after one
  };
  on_ranks(4, body, parse_link("1gbit/20ms"));
}

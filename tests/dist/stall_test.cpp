#include "dist/transport/stall.h"

#include <doctest/doctest.h>

#include <thread>

#include "dist/launch.h"
#include "dist/transport/collectives.h"
#include "tests/dist/ranks.h"
#include "tests/support.h"

using namespace tandem;
using namespace tandem::test;

namespace {

constexpr Sign kSilent{Sign::State::silent}, kBusy{Sign::State::busy};
constexpr Sign waits_for(int rank) { return {Sign::State::waits, rank}; }

std::string held_up(int self, int peer, const std::vector<Sign>& signs) {
  const HeldUp found = held_up_by(self, peer, signs);
  if (found.by == HeldUp::By::each_other) return "by each other";
  return (found.by == HeldUp::By::busy_rank ? "by busy " : "by silent ") + name_of_rank(found.rank);
}

// Waits for a message that does not come.
void wait_in_vain(Transport& transport, int from, Patience patience = Patience::until_timeout) {
  Request request = transport.receive(from, Tag::ring, {});
  transport.wait(request, patience);
}

// What a job says in which each rank waits for its left neighbour, but rank 2 does this.
std::string message_of_ring(const LinkSpeed& link,
                            const std::function<void(Communication&)>& rank_2) {
  return message_of<Stalled>([&] {
    run_on_ranks({.app = "test", .ranks = 4, .link = link, .stall_timeout_s = 0.4},
                 [&](Communication& communication) {
                   Transport& transport = communication.transport();
                   communication.call([&] { barrier(transport, 4); });
                   if (transport.rank() == 2) return rank_2(communication);
                   communication.call([&] { wait_in_vain(transport, (transport.rank() + 3) % 4); });
                 });
  });
}

}  // namespace

TEST_CASE("stall: the chain of waiting ranks ends at the rank that blocks them") {
  // A ring of four, each of which waits for its left neighbour.
  CHECK(held_up(0, 3, {waits_for(3), waits_for(0), kSilent, waits_for(2)}) == "by silent rank 2");
  CHECK(held_up(1, 0, {waits_for(3), waits_for(0), kBusy, waits_for(2)}) == "by busy rank 2");
  CHECK(held_up(3, 2, {waits_for(3), waits_for(0), waits_for(1), waits_for(2)}) == "by each other");
  CHECK(held_up(0, 1, {waits_for(1), waits_for(2), waits_for(1)}) == "by each other");
  // A rank that nobody waits for holds up nobody.
  CHECK(held_up(0, 1, {waits_for(1), kBusy, kSilent}) == "by busy rank 1");
  // For any of them, one that works is enough.
  CHECK(held_up(2, kAnyRank, {kSilent, kBusy, waits_for(kAnyRank)}) == "by busy rank 1");
  CHECK(held_up(2, kAnyRank, {kSilent, kSilent, waits_for(kAnyRank)}) == "by silent rank 0");
  CHECK(held_up(1, kAnyRank, {waits_for(1), waits_for(kAnyRank)}) == "by each other");
}

TEST_CASE("stall: in a stalled ring, only the missing rank is named") {
  for (const char* link : {"none", "1gbit/20us"})
    CHECK(message_of_ring(parse_link(link), [](Communication&) {}) ==
          "rank 2 has been silent for 0.4 s (--stall-timeout); the job ends");
}

TEST_CASE("stall: a rank that computes for too long is named as alive") {
  const std::string message = message_of_ring({}, [](Communication& communication) {
    // Until the others have given up: the transport ends waits then.
    CHECK_THROWS_AS(
        for (;;) {
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
          communication.call([&] {
            Request request = communication.transport().receive(0, Tag::push, {});
            Request* const one[] = {&request};
            communication.transport().wait_any_until(one, Clock::now());
          });
        },
        JobFailed);
  });
  CHECK(message ==
        "rank 2 is alive, but the others have waited 0.4 s for it; if it needs longer, raise "
        "--stall-timeout");
}

TEST_CASE("stall: ranks that wait for each other say so") {
  const std::string message = message_of<Stalled>([&] {
    run_on_ranks({.app = "test", .ranks = 2, .stall_timeout_s = 0.1},
                 [&](Communication& communication) {
                   Transport& transport = communication.transport();
                   communication.call([&] { wait_in_vain(transport, 1 - transport.rank()); });
                 });
  });
  CHECK(message.find("all ranks wait for each other") != std::string::npos);
}

TEST_CASE("stall: a patient rank waits only while the other works") {
  const auto run = [](const std::function<void()>& work, bool sends) {
    return message_of<Stalled>([&] {
      run_on_ranks(
          {.app = "test", .ranks = 2, .stall_timeout_s = 0.1}, [&](Communication& communication) {
            Transport& transport = communication.transport();
            if (transport.rank() == 0) {
              work();
              if (sends) communication.call([&] { transport.send_and_wait(1, Tag::ring, {}); });
              return;
            }
            communication.call([&] { wait_in_vain(transport, 0, Patience::while_others_work); });
          });
    });
  };
  const auto thrice_the_timeout = [] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
  };
  CHECK(run(thrice_the_timeout, true) == "");
  CHECK(run([] {}, false) == "rank 0 has been silent for 0.1 s (--stall-timeout); the job ends");
}

TEST_CASE(
    "stall: at the end of a job ranks wait for one that is busy, but not for one that is gone") {
  const auto run = [](const std::function<void(Communication&)>& last) {
    return message_of<Stalled>([&] {
      run_on_ranks({.app = "test", .ranks = 3, .stall_timeout_s = 0.1},
                   [&](Communication& communication) {
                     if (communication.transport().rank() == 0) return last(communication);
                     communication.call([&] { wait_for_all(communication.transport()); });
                   });
    });
  };
  CHECK(run([](Communication& communication) {
          std::this_thread::sleep_for(std::chrono::milliseconds(300));
          communication.call([&] { wait_for_all(communication.transport()); });
        }) == "");
  CHECK(run([](Communication&) {}) ==
        "rank 0 has been silent for 0.1 s (--stall-timeout); the job ends");
}

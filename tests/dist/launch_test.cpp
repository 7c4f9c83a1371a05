#include "dist/launch.h"

#include <doctest/doctest.h>

#include <latch>
#include <map>
#include <thread>

#include "base/error.h"
#include "dist/transport/collectives.h"
#include "tests/support.h"

using namespace tandem;
using namespace tandem::test;

TEST_CASE("launch: every rank runs once and can communicate with the others") {
  Monitor<std::vector<int>> seen;
  run_on_ranks({.app = "test", .ranks = 4}, [&](Communication& communication) {
    Transport& transport = communication.transport();
    seen.change([&](std::vector<int>& ranks) { ranks.push_back(transport.rank()); });
    double one[] = {1};
    communication.call([&] { sum_over_ranks(transport, 4, one); });
    CHECK(one[0] == 4);
  });
  seen.change([](const std::vector<int>& ranks) { CHECK(ranks.size() == 4); });
}

TEST_CASE("launch: an exception on one rank ends the job at once and is thrown with its rank") {
  const auto begin = Clock::now();
  const std::string message = message_of<SystemError>([&] {
    run_on_ranks({.app = "test", .ranks = 4}, [](Communication& communication) {
      if (communication.transport().rank() == 2) throw SystemError("out of luck");
      communication.call([&] { barrier(communication.transport(), 4); });
    });
  });
  CHECK(message == "rank 2: out of luck");
  CHECK(seconds_between(begin, Clock::now()) < 10);  // the stall timeout is 60
}

TEST_CASE("launch: any exception is rethrown with its rank and its type") {
  const auto run = [](const std::function<void()>& fail) {
    run_on_ranks({.app = "test", .ranks = 2}, [&](Communication& communication) {
      if (communication.transport().rank() == 1) fail();
      communication.call([&] { barrier(communication.transport(), 2); });
    });
  };
  CHECK(message_of<SystemError>([&] {
          run([] { throw std::bad_alloc(); });
        }).starts_with("rank 1: "));
  CHECK(message_of<std::logic_error>([&] { run([] { throw std::logic_error("a bug"); }); }) ==
        "rank 1: a bug");
}

TEST_CASE("launch: a usage error is rethrown unchanged") {
  CHECK(message_of<UserError>([&] {
          run_on_ranks({.app = "test", .ranks = 3}, [](Communication& communication) {
            together(communication, [] { throw UserError("no such file"); });
          });
        }) == "no such file");
}

TEST_CASE("launch: a rank that is silent is named after the stall timeout") {
  const std::string message = message_of<SystemError>([&] {
    run_on_ranks({.app = "test", .ranks = 2, .stall_timeout_s = 0.1},
                 [](Communication& communication) {
                   if (communication.transport().rank() == 1) return;  // never comes to the barrier
                   communication.call([&] { barrier(communication.transport(), 2); });
                 });
  });
  CHECK(message == "rank 1 has been silent for 0.1 s (--stall-timeout); the job ends");
}

TEST_CASE("launch: a job that waits in vain after a failure throws that failure") {
  const auto fail = [](Communication& communication) {
    Transport& transport = communication.transport();
    if (transport.rank() == 1) return;
    BlockingQueue<int> first, second;
    communication.post(first, [&]() -> int {
      transport.fail("a sum is not finite");
      throw Diverged("a sum is not finite");
    });
    communication.post(second, [&] {
      barrier(transport, 2);
      return 0;
    });
    second.take();  // before the first one's result
  };
  CHECK(message_of<Diverged>([&] { run_on_ranks({.app = "test", .ranks = 2}, fail); }) ==
        "rank 0: a sum is not finite");
}

TEST_CASE("launch: an error while opening the transport is thrown at once") {
  CHECK_THROWS_AS(Communication([]() -> std::unique_ptr<Transport> { throw UserError("no"); }),
                  UserError);
}

// What a rank's compute thread and its communication thread do while they wait.
TEST_CASE("launch: two worlds at once in one process do not change each other's waits") {
  // With one core there is none to spare.
  const bool may_spin = std::thread::hardware_concurrency() >= 2;
  for (const bool first : {false, true}) {  // which of them starts first
    std::map<bool, std::vector<bool>> spins{{false, {}}, {true, {}}};
    std::latch first_runs(1), both_run(2);
    const auto run_world = [&](bool computes_elsewhere) {
      run_on_ranks({.app = "test", .computes_elsewhere = computes_elsewhere},
                   [&](Communication& communication) {
                     first_runs.count_down(computes_elsewhere == first ? 1 : 0);
                     both_run.arrive_and_wait();
                     const auto here = [] { return SpinWhileWaiting::here(); };
                     spins.at(computes_elsewhere) = {here(), communication.call(here)};
                   });
      CHECK_FALSE(SpinWhileWaiting::here());
    };
    {
      const Thread one = start_thread("world 1", Work::waits, [&] { run_world(first); });
      first_runs.wait();
      run_world(!first);
    }
    CHECK(spins.at(true) == std::vector<bool>{may_spin, may_spin});
    CHECK(spins.at(false) == std::vector<bool>{false, false});
  }
}

TEST_CASE(
    "launch: a world that ends leaves the waits of another, and of its caller, as they were") {
  const SpinWhileWaiting caller(true);
  run_on_ranks({.app = "test"}, [&](Communication& outer) {
    CHECK_FALSE(SpinWhileWaiting::here());
    run_on_ranks({.app = "test", .computes_elsewhere = true}, [](Communication&) {});
    CHECK_FALSE(SpinWhileWaiting::here());
    CHECK_FALSE(outer.call([] { return SpinWhileWaiting::here(); }));
  });
  CHECK(SpinWhileWaiting::here());
}

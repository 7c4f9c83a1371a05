#include "base/virtual_time.h"

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "base/monitor.h"
#include "base/queue.h"
#include "base/thread.h"

using namespace tandem;
using namespace std::chrono_literals;

namespace {

Clock::time_point at(Clock::duration since_begin) { return Clock::time_point{} + since_begin; }
void sleep_for(Clock::duration duration) { sleep_until(Clock::now() + duration); }

}  // namespace

TEST_CASE("virtual time: the clock jumps from wait to wait" * doctest::skip(!has_virtual_time())) {
  const auto begin = Clock::now();
  in_virtual_time([] {
    CHECK(Clock::now() == at(0s));
    sleep_for(1h);
    CHECK(Clock::now() == at(1h));
    sleep_until(at(0s));  // is over
    CHECK(Clock::now() == at(1h));
  });
  CHECK(Clock::now() - begin < 10min);
  CHECK(Clock::now() >= begin);
}

TEST_CASE("virtual time: threads wake in the order of time, and of going to sleep" *
          doctest::skip(!has_virtual_time())) {
  std::string order;
  in_virtual_time([&] {
    std::vector<Thread> threads;
    for (const auto& [name, seconds] : {std::pair('c', 2s), {'a', 1s}, {'d', 2s}, {'b', 1s}})
      threads.push_back(start_thread("sleeper", Work::waits, [&order, name, seconds] {
        sleep_for(seconds);
        order += name;
        sleep_for(5s);
        order += name;
      }));
    threads.clear();
    CHECK(Clock::now() == at(7s));
  });
  CHECK(order == "abcdabcd");
}

TEST_CASE("virtual time: a wait ends with the change, or exactly at its time" *
          doctest::skip(!has_virtual_time())) {
  in_virtual_time([] {
    Monitor<int> value;
    const Thread writer = start_thread("writer", Work::waits, [&] {
      for (int i = 1; i <= 3; ++i) {
        sleep_for(10ms);
        value.change([](int& v) { ++v; });
      }
    });
    CHECK(value.wait([](int v) { return v == 2; }, [](int& v) { return v; }) == 2);
    CHECK(Clock::now() == at(20ms));
    CHECK_FALSE(value.wait_until(at(25ms), [](int v) { return v == 3; }));
    CHECK(Clock::now() == at(25ms));
    CHECK(value.wait_until(at(1h), [](int v) { return v == 3; }));
    CHECK(Clock::now() == at(30ms));
    CHECK(value.look([](int v) { return v; }) == 3);
  });
}

TEST_CASE("virtual time: work takes time, and is over before others see what follows it" *
          doctest::skip(!has_virtual_time())) {
  in_virtual_time([] {
    BlockingQueue<int> queue;
    const Thread worker = start_thread("worker", Work::computes, [&] {
      for (int i = 0; i < 3; ++i) {
        VirtualTime::here()->work(300ms);
        VirtualTime::here()->work(200ms);
        CHECK(Clock::now() == at((i + 1) * 500ms));
        queue.put(i);
      }
      VirtualTime::here()->work(1s);
    });
    sleep_until(at(700ms));
    for (int i = 0; i < 3; ++i) {
      CHECK(queue.take() == i);
      CHECK(Clock::now() == at(std::max<Clock::duration>(700ms, (i + 1) * 500ms)));
    }
    Thread other = start_thread("other", Work::computes, [] { VirtualTime::here()->work(5s); });
    other.join();
    CHECK(Clock::now() == at(6500ms));
  });
}

TEST_CASE("virtual time: queues pass items and exceptions" * doctest::skip(!has_virtual_time())) {
  in_virtual_time([] {
    BlockingQueue<int> queue;
    const Thread producer = start_thread("producer", Work::waits, [&] {
      for (int i = 0; i < 3; ++i) {
        sleep_for(1s);
        queue.put(i);
      }
      queue.close(std::make_exception_ptr(std::runtime_error("no more")));
    });
    for (int i = 0; i < 3; ++i) {
      CHECK(queue.take() == i);
      CHECK(Clock::now() == at((i + 1) * 1s));
    }
    CHECK_THROWS_WITH(queue.take(), "no more");
  });
}

TEST_CASE("virtual time: a thread may wait while it handles an exception" *
          doctest::skip(!has_virtual_time())) {
  std::string order;
  in_virtual_time([&] {
    std::vector<Thread> threads;
    for (int i = 0; i < 4; ++i)
      threads.push_back(start_thread("thrower", Work::waits, [&order, i] {
        try {
          throw std::runtime_error(std::to_string(i));
        } catch (const std::exception&) {
          sleep_for((4 - i) * 1s);
          try {
            throw;
          } catch (const std::exception& e) {
            order += e.what();
          }
        }
        if (std::current_exception()) order += "still handled";
      }));
  });
  CHECK(order == "3210");
}

TEST_CASE("virtual time: what the first thread throws is rethrown, after all have ended" *
          doctest::skip(!has_virtual_time())) {
  bool ended = false;
  CHECK_THROWS_WITH(in_virtual_time([&] {
                      start_thread("other", Work::waits, [&] {
                        sleep_for(1s);
                        ended = true;
                      }).detach();
                      throw std::runtime_error("failed");
                    }),
                    "failed");
  CHECK(ended);
  CHECK(VirtualTime::here() == nullptr);
}

TEST_CASE("virtual time: threads that wait for each other are found" *
          doctest::skip(!has_virtual_time())) {
  in_virtual_time([] {
    Monitor<bool> never;
    Monitor<bool> stop;
    const Thread other = start_thread("other", Work::waits,
                                      [&] { stop.wait([](bool s) { return s; }, [](bool&) {}); });
    CHECK_THROWS_WITH_AS(never.wait([](bool n) { return n; }, [](bool&) {}),
                         "all fibers wait for each other", std::logic_error);
    stop.change([](bool& s) { s = true; });
  });
}

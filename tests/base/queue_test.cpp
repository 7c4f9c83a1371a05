#include "base/queue.h"

#include <doctest/doctest.h>

#include <stdexcept>

#include "tests/support.h"

using namespace tandem;
using namespace tandem::test;

TEST_CASE("queue: items come out in order, then the failure, whatever is put after it") {
  BlockingQueue<int> queue;
  queue.put(1);
  queue.put_result_of([] { return 2; });
  queue.put_result_of([]() -> int { throw std::runtime_error("a fault"); });
  queue.put(4);  // a job that ran after the one that failed
  CHECK(queue.take() == 1);
  CHECK(queue.take() == 2);
  for (int i = 0; i < 2; ++i)
    CHECK(message_of<std::runtime_error>([&] { queue.take(); }) == "a fault");
}

TEST_CASE("queue: a closed queue returns the remaining items, then nothing") {
  BlockingQueue<int> queue;
  queue.put(1);
  queue.close();
  CHECK(queue.take_if_open() == 1);
  CHECK_FALSE(queue.take_if_open());
}

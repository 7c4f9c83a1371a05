// Ranks as threads, for tests.
#pragma once

#include <exception>
#include <functional>
#include <vector>

#include "base/thread.h"
#include "dist/transport/link.h"
#include "dist/transport/threads.h"

namespace tandem::test {

// Runs body(transport) on `size` ranks of the network at once and waits for all; throws what the
// lowest rank threw.
inline void on_ranks(ThreadsNetwork& network, const std::function<void(Transport&)>& body,
                     const LinkSpeed& speed = {}) {
  const int size = network.size();
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(size));
  {
    std::vector<Thread> threads;
    for (int rank = 0; rank < size; ++rank)
      threads.push_back(start_thread("rank", Work::waits, [&, rank] {
        try {
          const auto transport = slow_down(network.transport(rank), speed);
          body(*transport);
        } catch (const std::exception& e) {
          failures[static_cast<std::size_t>(rank)] = std::current_exception();
          network.fail(e.what());
        }
      }));
  }
  for (const auto& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

inline void on_ranks(int size, const std::function<void(Transport&)>& body,
                     const LinkSpeed& speed = {}) {
  ThreadsNetwork network(size);
  on_ranks(network, body, speed);
}

}  // namespace tandem::test

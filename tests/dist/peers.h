// Workers of an algorithm without servers, for tests. Each has one parameter.
#pragma once

#include <cstdint>
#include <functional>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/virtual_time.h"
#include "dist/launch.h"
#include "dist/strategies.h"
#include "tests/support.h"

namespace tandem::test {

struct Peer {
  Peer(const Device& device, const std::vector<float>& weights,
       const SgdOptions& options = {.schedule = {.base = 0.125}})
      : w({std::ssize(weights)}, weights), set({{"w", &w}}, device), sgd(set, options) {}

  std::vector<float> weights() const { return w.value.to_host<float>(); }

  Parameter w;
  ParameterSet set;
  Sgd sgd;
  Spans spans;
};

struct PeersJob {
  std::string algo;
  StrategyOptions options = {};
  int workers = 2;
  std::int64_t iterations = 1;
  Device (*device)() = [] { return cpu_device(); };
  const char* link = "10gbe";
  SgdOptions sgd = {.schedule = {.base = 0.125}};
  std::function<std::vector<float>(int rank)> start;
  // Sets the gradient of an iteration.
  std::function<void(Peer& peer, int rank, std::int64_t t)> backward =
      [](Peer& peer, int, std::int64_t) { peer.set.device().backend().fill(peer.w.gradient, 0); };
  // How long an iteration computes.
  std::function<Clock::duration(int rank, std::int64_t t)> compute = [](int, std::int64_t) {
    return std::chrono::milliseconds(1);
  };
  // After these iterations the workers pause, and each calls `paused`.
  std::set<std::int64_t> pauses = {};
  std::function<void(Peer& peer, Strategy& strategy, int rank)> paused = {};
};

struct PeersResult {
  std::vector<std::vector<float>> weights;                    // by worker
  std::vector<std::int64_t> pushed_by, pulled_by, summed_by;  // bytes that each has sent

  std::int64_t pushed() const { return sum(pushed_by); }
  std::int64_t pulled() const { return sum(pulled_by); }
  std::int64_t summed() const { return sum(summed_by); }

 private:
  static std::int64_t sum(const std::vector<std::int64_t>& all) {
    return std::accumulate(all.begin(), all.end(), std::int64_t{0});
  }
};

// In virtual time if it is called there; else iterations take no time.
inline PeersResult run_peers_now(const PeersJob& job) {
  const auto workers = static_cast<std::size_t>(job.workers);
  const std::vector<std::int64_t> none_sent(workers);
  PeersResult result{std::vector<std::vector<float>>(workers), none_sent, none_sent, none_sent};
  const auto compressor = make_none();
  const RankOptions ranks{.app = "test", .ranks = job.workers, .link = parse_link(job.link)};
  run_on_ranks(ranks, [&](Communication& communication) {
    const int rank = communication.transport().rank();
    Peer peer(job.device(), job.start(rank), job.sgd);
    const auto strategy = make_strategy(job.algo, {.parameters = peer.set,
                                                   .optimizer = peer.sgd,
                                                   .spans = peer.spans,
                                                   .communication = communication,
                                                   .compressor = *compressor,
                                                   .workers = job.workers,
                                                   .options = job.options});
    try {
      for (std::int64_t t = 1; t <= job.iterations; ++t) {
        strategy->before_step(t);
        job.backward(peer, rank, t);
        if (VirtualTime* time = VirtualTime::here()) time->work(job.compute(rank, t));
        strategy->after_backward(t);
        if (!job.pauses.contains(t)) continue;
        strategy->settle();
        job.paused(peer, *strategy, rank);
      }
      strategy->finish();
    } catch (const std::exception& e) {
      communication.stop(e.what());
      throw;
    }
    const auto own = static_cast<std::size_t>(rank);
    const Transport& transport = communication.transport();
    result.weights[own] = peer.weights();
    result.pushed_by[own] = transport.bytes_sent(Tag::push);
    result.pulled_by[own] = transport.bytes_sent(Tag::pull);
    result.summed_by[own] = transport.bytes_sent(Tag::ring);
  });
  return result;
}

inline PeersResult run_peers(const PeersJob& job) {
  PeersResult result;
  in_virtual_time([&] { result = run_peers_now(job); });
  return result;
}

// From 0 to 3 ms; some iterations take ten times as long.
inline Clock::duration random_compute(int rank, std::int64_t t) {
  Random random =
      Random(7).split(static_cast<std::uint64_t>(rank)).split(static_cast<std::uint64_t>(t));
  const auto time = std::chrono::microseconds(random.below(3000));
  return random.below(20) == 0 ? 10 * time : time;
}

}  // namespace tandem::test

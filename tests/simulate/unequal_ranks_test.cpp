// Simulated runs whose ranks compute at different speeds or have different links, beside schedules
// that are computed by hand.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/random.h"
#include "base/virtual_time.h"
#include "dist/timing/model.h"
#include "tests/simulate/closed_forms.h"

using namespace tandem;
using namespace tandem::test;

TEST_CASE("closed forms: synchronous algorithms have the pace of the slowest rank" *
          doctest::skip(!has_virtual_time())) {
  constexpr double kCompute = 30e-3;
  const Profile profile = equal_tensors(6, 4 * kBlock, kCompute / 3, kCompute * 2 / 3);
  const Profile slow = equal_tensors(6, 4 * kBlock, kCompute * 2 / 3, kCompute * 4 / 3);
  for (const StrategyInfo& algo : all_strategies()) {
    if (!algo.distributed() || algo.asynchronous()) continue;
    CAPTURE(algo.name);
    Simulation simulation{.algo = algo.name, .workers = 4, .link = kGigabit, .iterations = 40};
    const double all_slow = iteration(slow, simulation);
    const double none_slow = iteration(profile, simulation);
    CHECK(none_slow < 0.6 * all_slow);
    for (const int rank : {0, 2}) {
      CAPTURE(rank);
      simulation.slow_ranks = {{rank, 0.5}};
      const double one_slow = iteration(profile, simulation);
      CHECK(one_slow > 2 * kCompute * 0.9999);
      // The others' first messages have arrived when it begins to communicate, so that it takes a
      // little less time than if all were slow.
      CHECK(one_slow < all_slow * 1.0001);
      CHECK(one_slow == about(all_slow, 0.04));
    }
  }
}

TEST_CASE("closed forms: a slow rank does not slow the others down if they do not wait" *
          doctest::skip(!has_virtual_time())) {
  constexpr double kCompute = 30e-3;
  constexpr int p = 4;
  const Profile profile = equal_tensors(6, 4 * kBlock, kCompute / 3, kCompute * 2 / 3);
  Simulation simulation{.algo = "asp", .workers = p, .iterations = 60, .slow_ranks = {{2, 0.5}}};
  // While three workers finish an iteration, the slow one finishes half of one.
  CHECK(iteration(profile, simulation) == about(kCompute * p / 3.5, 0.02));
  // It may be four iterations behind; then the others wait.
  simulation.algo = "ssp";
  simulation.options["--staleness"] = 4;
  CHECK(iteration(profile, simulation) == about(2 * kCompute, 0.1));
}

TEST_CASE("closed forms: with scatter, d-sync takes the expected maximum over the ranks" *
          doctest::skip(!has_virtual_time())) {
  constexpr double kCompute = 10e-3;
  Profile profile = equal_tensors(1, kBlock, kCompute / 2, kCompute / 2);
  profile.spread = {0.8, 0.9, 0.95, 1, 1.05, 1.2, 1.7};
  const auto draw = [&](Random& random) {
    const double at = random.uniform() * static_cast<double>(profile.spread.size() - 1);
    const auto below = static_cast<std::size_t>(at);
    return std::lerp(profile.spread[below], profile.spread[below + 1],
                     at - static_cast<double>(below));
  };
  for (const int p : {2, 8}) {
    CAPTURE(p);
    Random random(42);
    double sum = 0;
    constexpr int kDraws = 100'000;
    for (int i = 0; i < kDraws; ++i) {
      double slowest = 0;
      for (int rank = 0; rank < p; ++rank) slowest = std::max(slowest, draw(random));
      sum += slowest;
    }
    // The link takes no time, so that only computing counts.
    Simulation simulation{.algo = "d-sync", .workers = p, .iterations = 1000, .scatters = true};
    const SimulatedRun run = simulate(profile, simulation);
    CHECK(run.mean_s() == about(kCompute * sum / kDraws, 0.02));
    CHECK(run.counted_s().size() == 1000 - static_cast<std::size_t>(run.cold));
    CHECK(simulate(profile, simulation).ends == run.ends);
    simulation.seed = 2;
    const SimulatedRun other = simulate(profile, simulation);
    CHECK(other.ends != run.ends);
    CHECK(other.mean_s() == about(run.mean_s(), 0.02));
    simulation.scatters = false;
    CHECK(iteration(profile, simulation) == exactly(kCompute));
  }
}

namespace {

// Several iterations of d-sync by hand, if each share is one message: the ring of plan.h, and NICs
// as in link.h. `link(a, b)` is the link of rank a through which it talks to rank b. Returns the
// mean time on rank 0 of the last 60 iterations; they repeat in cycles of up to four.
template <class LinkOf>
double by_hand(int p, double compute_s, LinkOf&& link) {
  const auto n = static_cast<std::size_t>(p);
  std::vector<double> made(n, 0), out_free(n, 0), in_free(n, 0), received(n);
  double before = 0;
  for (int iteration = 0; iteration < 80; ++iteration) {
    if (iteration == 20) before = made[0];
    for (double& t : made) t += compute_s;
    for (int step = 0; step < 2 * (p - 1); ++step) {
      for (std::size_t rank = 0; rank < n; ++rank) {
        const std::size_t right = (rank + 1) % n;
        const LinkSpeed out = link(static_cast<int>(rank), static_cast<int>(right));
        const LinkSpeed in = link(static_cast<int>(right), static_cast<int>(rank));
        const double latency = std::max(out.latency_s, in.latency_s);
        const double begin = std::max(made[rank], out_free[rank]);
        out_free[rank] = begin + kBlockBytes * beta(out);
        const double arrival = begin + kFrameBytes * beta(out) + latency;
        in_free[right] = std::max(in_free[right], arrival) + kBlockBytes * beta(in);
        received[right] =
            std::max(in_free[right], out_free[rank] + latency + kFrameBytes * beta(in));
      }
      for (std::size_t rank = 0; rank < n; ++rank)
        made[rank] = std::max(made[rank], received[rank]);
    }
    for (std::size_t rank = 0; rank < n; ++rank)
      made[rank] = std::max(made[rank], out_free[rank]);  // a rank waits until all has left
  }
  return (made[0] - before) / 60;
}

}  // namespace

TEST_CASE("closed forms: slow links slow the ring down" * doctest::skip(!has_virtual_time())) {
  constexpr double kCompute = 2e-3;
  constexpr LinkSpeed kSlow{.bytes_per_s = kGigabit.bytes_per_s / 2,
                            .latency_s = kGigabit.latency_s};
  for (const int p : {2, 3, 4, 8}) {
    CAPTURE(p);
    const Profile profile = equal_tensors(1, p * kBlock, kCompute / 2, kCompute / 2);
    Simulation simulation{
        .algo = "d-sync", .workers = p, .link = kGigabit, .slow_links = {{1, kSlow}}};
    CHECK(iteration(profile, simulation) ==
          exactly(by_hand(p, kCompute, [&](int a, int) { return a == 1 ? kSlow : kGigabit; })));
    simulation.slow_links.clear();
    CHECK(iteration(profile, simulation) ==
          exactly(by_hand(p, kCompute, [&](int, int) { return kGigabit; })));

    // A long gradient: all of it passes the slow link, and latencies hardly count.
    const Profile large = equal_tensors(4, p * 256 * kBlock, 0, 0);
    const double bytes = 4 * static_cast<double>(large.elements());
    simulation.slow_links = {{1, kSlow}};
    CHECK(iteration(large, simulation) ==
          about(ring_time({.beta = beta(kSlow)}, p, bytes, bytes), 0.03));
  }
}

TEST_CASE("closed forms: a fast link within nodes makes the ring faster" *
          doctest::skip(!has_virtual_time())) {
  constexpr double kCompute = 2e-3;
  constexpr LinkSpeed kInner{.bytes_per_s = kGigabit.bytes_per_s * 20, .latency_s = 2e-6};
  for (const int p : {4, 6, 8}) {
    CAPTURE(p);
    const Profile profile = equal_tensors(1, p * kBlock, kCompute / 2, kCompute / 2);
    const Profile large = equal_tensors(4, p * 256 * kBlock, 0, 0);
    Simulation simulation{.algo = "d-sync", .workers = p, .link = kGigabit};
    const double apart = iteration(profile, simulation);
    const double large_apart = iteration(large, simulation);

    // With the same link, nodes change nothing: in a ring, one rank of a node sends to another
    // node, and one receives.
    simulation.ranks_per_node = 2;
    simulation.inner = kGigabit;
    CHECK(iteration(profile, simulation) == apart);

    simulation.inner = kInner;
    const double nodes = iteration(profile, simulation);
    CHECK(nodes == exactly(by_hand(p, kCompute, [&](int a, int b) {
            return a / 2 == b / 2 ? kInner : kGigabit;
          })));
    CHECK(nodes < apart);
    // The bandwidth between nodes stays the bottleneck.
    CHECK(iteration(large, simulation) == about(large_apart, 0.03));

    simulation.ranks_per_node = p;  // all on one
    const double bytes = p * kBlockBytes;
    CHECK(iteration(profile, simulation) ==
          exactly(kCompute +
                  ring_time({.alpha = alpha(kInner), .beta = beta(kInner)}, p, bytes, bytes)));
  }
}

// Simulated runs beside what the papers' equations and figures say, and beside schedules that are
// computed by hand.
//
// Most nets here are so small that each rank's share of a message is one block. Then a step of the
// ring is one message, nothing is pipelined, and the equations hold exactly, except that the
// simulator rounds times to nanoseconds.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/virtual_time.h"
#include "dist/block.h"
#include "dist/schedule/merge.h"
#include "dist/timing/model.h"
#include "dist/transport/link.h"
#include "simulate/simulation.h"

using namespace tandem;

namespace {

constexpr LinkSpeed kLink{.bytes_per_s = 1.25e8, .latency_s = 50e-6};
constexpr double kBlockBytes = kBlock * sizeof(float);

// A message of M bytes takes alpha + M·beta. The switch forwards its first frame, so that a frame
// counts twice.
double alpha(const LinkSpeed& link) {
  return link.latency_s + static_cast<double>(kFrameBytes) / link.bytes_per_s;
}
double beta(const LinkSpeed& link) { return 1 / link.bytes_per_s; }

// The tolerance is relative, also for times far below a second.
doctest::Approx about(double seconds, double tolerance) {
  return doctest::Approx(seconds).epsilon(tolerance).scale(0);
}
// Rounding to nanoseconds, a few dozen times in a fraction of a millisecond or more.
doctest::Approx exactly(double seconds) { return about(seconds, 1e-4); }

// A net of equal tensors that together take this long.
Profile net(int tensors, std::int64_t elements, double forward_s, double backward_s,
            const HostCost& host = {}) {
  Profile profile;
  for (const std::string& compressor : compressor_names()) profile.host[compressor] = host;
  for (int i = 0; i < tensors; ++i)
    profile.tensors.push_back({.name = "tensor " + std::to_string(i),
                               .elements = elements,
                               .forward_s = forward_s / tensors,
                               .backward_s = backward_s / tensors});
  return profile;
}

double iteration(const Profile& profile, const Simulation& simulation) {
  return simulate(profile, simulation).mean_s();
}

}  // namespace

// ---- Pipe-SGD, Eq. 2 to 7

TEST_CASE("closed forms: d-sync and pipe-sgd take the time of Eq. 2, 4 and 5" *
          doctest::skip(!has_virtual_time())) {
  constexpr HostCost kHost{.check = 1e-8,
                           .compress = 1e-8,
                           .decompress = 1.5e-8,
                           .add = 2e-8,
                           .copy = 1e-8,
                           .update = 3e-8};
  for (const std::string compress : {"none", "trunc16"})
    for (const int p : {2, 3, 4, 8})
      for (const double compute_s : {0.2e-3, 20e-3}) {
        CAPTURE(compress);
        CAPTURE(p);
        CAPTURE(compute_s);
        const Profile profile = net(1, p * kBlock, compute_s / 3, compute_s * 2 / 3, kHost);
        const double elements = static_cast<double>(profile.elements()), n = 4 * elements;
        const double n_wire = compress == "none" ? n : n / 2;
        const ComputeCost compute{.update = elements * kHost.update,
                                  .forward = compute_s / 3,
                                  .backward = compute_s * 2 / 3};
        // S is what happens once: checking that the gradient is finite, compressing the share that
        // a rank sends first, and decompressing the one that it receives last. The others are
        // (de)compressed while messages travel.
        double once = elements * kHost.check;
        if (compress != "none") once += kBlock * (kHost.compress + kHost.decompress);
        const NetworkCost cost{.alpha = alpha(kLink),
                               .beta = beta(kLink),
                               .gamma = kHost.add / sizeof(float),
                               .sync = once};
        const double communication = ring_time(cost, p, n, n_wire);

        Simulation simulation{.algo = "d-sync", .compress = compress, .workers = p, .link = kLink};
        CHECK(iteration(profile, simulation) == exactly(sync_iteration(compute, communication)));
        simulation.algo = "pipe-sgd";
        for (const int k : {1, 2, 3, 10}) {
          CAPTURE(k);
          simulation.options["--pipe-k"] = k;
          const double seconds = iteration(profile, simulation);
          CHECK(seconds == exactly(k == 1 ? sync_iteration(compute, communication)
                                          : pipe_iteration(compute, communication)));
          // Eq. 3 is for K computing and K communicating resources. A rank has one of each.
          CHECK(seconds >= 0.9999 * ideal_pipe_iteration(compute, communication, k));
        }
        // Eq. 7: the scaling efficiency.
        simulation.options["--pipe-k"] = 2;
        const double single = iteration(profile, {.algo = "single"});
        CHECK(single == exactly(compute.all()));
        CHECK(single / iteration(profile, simulation) ==
              exactly(compute.all() / std::max(compute.all(), communication)));
      }
}

// A sum that takes slightly longer than computing falls behind slowly: iterations wait for sums
// only after many of them. The simulation must not end before.
TEST_CASE("closed forms: pipe-sgd has the pace of its sums, also if computing is hardly faster" *
          doctest::skip(!has_virtual_time())) {
  constexpr int p = 4;
  constexpr double kBytes = p * kBlockBytes;
  const double communication =
      ring_time({.alpha = alpha(kLink), .beta = beta(kLink)}, p, kBytes, kBytes);
  for (const int k : {2, 3, 12})
    for (const double compute : {0.1, 0.8, 0.9, 0.95, 1.0, 1.1}) {
      CAPTURE(k);
      CAPTURE(compute);
      const Profile profile = net(1, p * kBlock, 0, compute * communication);
      const Simulation simulation{
          .algo = "pipe-sgd", .options = {{"--pipe-k", k}}, .workers = p, .link = kLink};
      CHECK(iteration(profile, simulation) == exactly(std::max(1.0, compute) * communication));
    }
}

TEST_CASE("closed forms: long gradients hide latencies that Eq. 5 counts" *
          doctest::skip(!has_virtual_time())) {
  for (const int p : {2, 4, 8}) {
    CAPTURE(p);
    const Profile profile = net(4, p * 64 * kBlock, 0, 0);
    const double n = 4 * static_cast<double>(profile.elements());
    const double seconds = iteration(profile, {.algo = "d-sync", .workers = p, .link = kLink});
    CHECK(seconds < ring_time({.alpha = alpha(kLink), .beta = beta(kLink)}, p, n, n));
    CHECK(seconds > ring_time({.beta = beta(kLink)}, p, n, n));
  }
}

TEST_CASE("closed forms: a gradient in pieces takes the time of Eq. 6" *
          doctest::skip(!has_virtual_time())) {
  constexpr HostCost kHost{.check = 1e-8, .add = 2e-8, .update = 1e-8};
  for (const int p : {2, 4})
    for (const int pieces : {2, 5}) {
      CAPTURE(p);
      CAPTURE(pieces);
      // Backward finishes all tensors at the same time, so that nothing overlaps with it.
      Profile profile = net(pieces, p * kBlock, 1e-3, 0, kHost);
      profile.tensors.back().backward_s = 2e-3;
      const double elements = static_cast<double>(profile.elements()), n = 4 * elements;
      // Only the update of the last piece does not overlap with communication.
      const ComputeCost compute{
          .update = elements / pieces * kHost.update, .forward = 1e-3, .backward = 2e-3};
      const NetworkCost cost{.alpha = alpha(kLink),
                             .beta = beta(kLink),
                             .gamma = kHost.add / sizeof(float),
                             .sync = elements / pieces * kHost.check};
      CHECK(iteration(profile, {.algo = "wfbp", .workers = p, .link = kLink}) ==
            exactly(sync_iteration(compute, ring_time_in_pieces(cost, p, n, n, pieces))));
    }
}

// ---- MG-WFBP, Eq. 6 to 8 and 21

TEST_CASE("closed forms: wfbp and mg-wfbp take the time of MG-WFBP's Eq. 21" *
          doctest::skip(!has_virtual_time())) {
  constexpr HostCost kHost{.check = 0.5e-9, .add = 1e-9, .update = 1e-8};
  constexpr int p = 4, kTensors = 6;
  constexpr std::int64_t kElements = p * kBlock;
  constexpr double kForward = 1e-3, kBytes = kElements * sizeof(float);
  // An all-reduce of M bytes takes a + bM (the ring's row of Table II).
  const double share = static_cast<double>(p - 1) / p;
  const SumCost cost{.a = 2 * (p - 1) * alpha(kLink),
                     .b = 2 * share * beta(kLink) + share * kHost.add / sizeof(float) +
                          kHost.check / sizeof(float)};
  const double update_s = kElements * kHost.update;  // of one tensor

  for (const double backward_s : {0.3e-3, 3e-3, 6e-3, 30e-3}) {
    CAPTURE(backward_s);
    const Profile profile = net(kTensors, kElements, kForward, backward_s, kHost);
    Layers layers;
    for (int i = 1; i <= kTensors; ++i)
      layers.push_back({kForward + i * backward_s / kTensors, kBytes});

    // Eq. 6 to 8: a layer's communication begins when its gradient is ready and the network is
    // free. Eq. 21: the iteration ends with that of the first layer. (Our update comes then.)
    double begins = 0, ends = 0;
    for (const TimedLayer& layer : layers) {
      begins = std::max(ends, layer.ready);
      ends = begins + cost.a + cost.b * layer.bytes;
    }
    CHECK(finish_time(layers, each_alone(layers), cost) == about(ends, 1e-9));
    Simulation simulation{.algo = "wfbp", .workers = p, .link = kLink};
    const SimulatedRun wfbp = simulate(profile, simulation);
    CHECK(wfbp.mean_s() == exactly(ends + update_s));

    // The strategy has measured nearly the same. Its line must also fit sums of a single block,
    // which take less than a + bM: one rank after the other is done with them, and the mean over
    // the ranks counts.
    REQUIRE(wfbp.plan.merge);
    const MergePlan& measured = *wfbp.plan.merge;
    CHECK(measured.cost.a == about(cost.a, 0.3));
    CHECK(measured.cost.b == about(cost.b, 0.1));
    REQUIRE(measured.layers.size() == kTensors);
    for (std::size_t i = 0; i < kTensors; ++i) {
      CHECK(measured.layers[i].ready == exactly(layers[i].ready));
      CHECK(measured.layers[i].bytes == kBytes);
    }
    CHECK(*wfbp.plan.predicted_s == about(wfbp.mean_s(), 0.08));

    for (const std::string algo : {"mg-wfbp", "merge"}) {
      CAPTURE(algo);
      simulation.algo = algo;
      const SimulatedRun run = simulate(profile, simulation);
      REQUIRE(run.plan.merge);
      const MergePlan& plan = *run.plan.merge;
      CHECK(plan.groups == (algo == "merge" ? optimal(plan.layers, plan.cost)
                                            : by_theorem_1(plan.layers, plan.cost)));
      CHECK(*run.plan.predicted_s == about(run.mean_s(), 0.04));
      // A single message does not wait for the end of a step, and takes less than a + bM.
      const double expected = finish_time(layers, plan.groups, cost) +
                              static_cast<double>(plan.groups.back()) * update_s;
      if (plan.groups.size() > 1)
        CHECK(run.mean_s() == exactly(expected));
      else
        CHECK(run.mean_s() <= 1.0001 * expected);
      CHECK(run.mean_s() <= 1.02 * wfbp.mean_s());
    }
  }
}

// ---- P3, Fig. 4 and 6

namespace {

constexpr double kUnit = 0.5;  // seconds
constexpr std::int64_t kUnitElements = 1000 * kBlock;
constexpr std::int64_t kFine = 10 * kBlock;  // elements of a short slice

// Three layers; forward and backward of each take one unit.
Profile toy(const std::vector<std::int64_t>& elements, const HostCost& host = {}) {
  Profile profile = net(3, 0, 3 * kUnit, 3 * kUnit, host);
  for (std::size_t i = 0; i < 3; ++i) profile.tensors[i].elements = elements[i];
  return profile;
}

struct ToyTimes {
  double delay;      // units from the end of backward to the beginning of the next forward
  double iteration;  // units
};
// Of a run in which each worker's gradient takes `units` per kUnitElements in each direction.
ToyTimes run_toy(const Profile& profile, Simulation simulation, double units) {
  simulation.workers = 2;
  simulation.link = {.bytes_per_s = kUnitElements * sizeof(float) / (units * kUnit),
                     .latency_s = 1e-6};
  simulation.keep_spans = true;
  const SimulatedRun run = simulate(profile, simulation);
  Clock::time_point backward_ends, wait_ends;
  for (const Spans::Span& span : run.ranks[0].compute_spans) {
    if (span.kind == SpanKind::backward && span.iteration == run.last_counted - 1)
      backward_ends = span.end;
    // The first wait of an iteration is for the first layer.
    if (span.kind == SpanKind::wait && span.iteration == run.last_counted &&
        wait_ends == Clock::time_point())
      wait_ends = span.end;
  }
  return {seconds_between(backward_ends, wait_ends) / kUnit, run.mean_s() / kUnit};
}

doctest::Approx units(double expected) { return about(expected, 0.02); }

constexpr std::int64_t kPriority = 0, kReady = 1;  // --order
constexpr std::int64_t kServers = 1, kRing = 2;    // --via

}  // namespace

// Fig. 4: the synchronisation of a layer takes two units. Times since the beginning of backward:
//
//                    0   1   2   3   4   5   6   7   8   9   10
//   compute          | 3 | 2 | 1 |               | 1 | 2 | 3 |    in the order of backward
//   network              | 3     | 2     | 1     |
//   compute          | 3 | 2 | 1 |       | 1 | 2 | 3 |            with priorities
//   network              | 3 | 2 | 1     | 2 | 3 |
TEST_CASE("closed forms: priorities halve the delay, as in P3's Fig. 4" *
          doctest::skip(!has_virtual_time())) {
  const Profile profile = toy({kUnitElements, kUnitElements, kUnitElements});
  // With two workers, a worker sends half a layer to be added and half a layer of sums: all of a
  // layer in the time in which the toy synchronises it.
  const auto run = [&](const std::string& algo, const StrategyOptions& options) {
    return run_toy(profile, {.algo = algo, .options = options}, 2);
  };
  const ToyTimes aggressive = run("ps-wfbp", {});
  CHECK(aggressive.delay == units(4));
  CHECK(aggressive.iteration == units(10));
  const ToyTimes slices = run("p3", {{"--slice", kFine}, {"--order", kReady}});
  CHECK(slices.delay == units(4));  // slices alone gain nothing here
  CHECK(slices.iteration == units(10));
  const ToyTimes p3 = run("p3", {{"--slice", kFine}, {"--order", kPriority}});
  CHECK(p3.delay == units(2));
  CHECK(p3.iteration == units(8));

  // Whole layers over a ring: layer 3 is on its way when the others are ready, and cannot be
  // overtaken. The delay is the same, but forward waits for layer 2 as well.
  const ToyTimes layers = run("p3", {{"--slice", kUnitElements}, {"--via", kRing}});
  CHECK(layers.delay == units(2));
  CHECK(layers.iteration == units(9));
  const ToyTimes layers_in_order =
      run("p3", {{"--slice", kUnitElements}, {"--via", kRing}, {"--order", kReady}});
  CHECK(layers_in_order.delay == units(4));
  CHECK(layers_in_order.iteration == units(10));
}

// Fig. 6: a layer is sent to the server (one unit), added there (one unit) and sent back (one
// unit). Layer 2 is three times as large. Times since layer 3 is ready, first without adding:
//
//              0   1   2   3   4   5   6   7   8
//   to server  | 3 | 2         | 1 |               whole layers
//   back           | 3 |       | 2         | 1 |
//   to server  | 3 | 2 | 2 | 2 | 1 |               slices of one unit
//   back           | 3 | 2 | 2 | 2 | 1 |
//
// With adding, the figure has 10 units for whole layers and 7 for slices, 30% less. Its server adds
// several layers at the same time. Ours adds one after the other, so that layer 1 waits and the
// whole layers take 11 units. And a worker's message counts as in flight until the server has added
// it, so slices of one unit are not sent one directly after the other. Short slices suffer less.
TEST_CASE("closed forms: slices cut communication, as in P3's Fig. 6" *
          doctest::skip(!has_virtual_time())) {
  const auto communication = [](std::int64_t slice, const HostCost& host) {
    const ToyTimes times = run_toy(toy({kUnitElements, 3 * kUnitElements, kUnitElements}, host),
                                   {.algo = "p3",
                                    .options = {{"--slice", slice},
                                                {"--order", kReady},
                                                {"--via", kServers},
                                                {"--servers", 2}}},
                                   1);
    CHECK(times.iteration == units(times.delay + 6));
    return times.delay + 2;  // layer 3 was ready two units before the end of backward
  };
  CHECK(communication(3 * kUnitElements, {}) == units(8));
  CHECK(communication(kUnitElements, {}) == units(6));
  CHECK(communication(kFine, {}) == units(5));

  // Each of the two servers adds half a layer.
  constexpr HostCost kAdds{.add = kUnit / (kUnitElements / 2)};
  const double whole = communication(3 * kUnitElements, kAdds);
  CHECK(whole == units(11));
  CHECK(communication(kUnitElements, kAdds) < 0.85 * whole);
  CHECK(communication(kFine, kAdds) < 0.7 * whole);
}

// ---- ranks that differ

TEST_CASE("closed forms: synchronous algorithms have the pace of the slowest rank" *
          doctest::skip(!has_virtual_time())) {
  constexpr double kCompute = 30e-3;
  const Profile profile = net(6, 4 * kBlock, kCompute / 3, kCompute * 2 / 3);
  const Profile slow = net(6, 4 * kBlock, kCompute * 2 / 3, kCompute * 4 / 3);
  for (const StrategyInfo& algo : all_strategies()) {
    if (algo.family == Family::alone) continue;
    CAPTURE(algo.name);
    Simulation simulation{.algo = algo.name, .workers = 4, .link = kLink, .iterations = 40};
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

TEST_CASE("closed forms: local-sgd averages once per period" * doctest::skip(!has_virtual_time())) {
  constexpr int p = 4;
  constexpr double kCompute = 3e-3, kBytes = p * kBlockBytes;
  const Profile profile = net(1, p * kBlock, kCompute / 3, kCompute * 2 / 3);
  const double communication =
      ring_time({.alpha = alpha(kLink), .beta = beta(kLink)}, p, kBytes, kBytes);
  for (const int period : {1, 2, 7, 8, 16, 30}) {
    CAPTURE(period);
    Simulation simulation{
        .algo = "local-sgd", .options = {{"--period", period}}, .workers = p, .link = kLink};
    CHECK(iteration(profile, simulation) == exactly(kCompute + communication / period));
    // All wait for the slowest, but only then. One message is there before it begins to average.
    simulation.slow_ranks = {{1, 0.5}};
    CHECK(iteration(profile, simulation) == about(2 * kCompute + communication / period, 0.03));
  }
}

TEST_CASE("closed forms: with scatter, d-sync takes the expected maximum over the ranks" *
          doctest::skip(!has_virtual_time())) {
  constexpr double kCompute = 10e-3;
  Profile profile = net(1, kBlock, kCompute / 2, kCompute / 2);
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

// ---- links that differ

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
  constexpr LinkSpeed kSlow{.bytes_per_s = kLink.bytes_per_s / 2, .latency_s = kLink.latency_s};
  for (const int p : {2, 3, 4, 8}) {
    CAPTURE(p);
    const Profile profile = net(1, p * kBlock, kCompute / 2, kCompute / 2);
    Simulation simulation{
        .algo = "d-sync", .workers = p, .link = kLink, .slow_links = {{1, kSlow}}};
    CHECK(iteration(profile, simulation) ==
          exactly(by_hand(p, kCompute, [&](int a, int) { return a == 1 ? kSlow : kLink; })));
    simulation.slow_links.clear();
    CHECK(iteration(profile, simulation) ==
          exactly(by_hand(p, kCompute, [&](int, int) { return kLink; })));

    // A long gradient: all of it passes the slow link, and latencies hardly count.
    const Profile large = net(4, p * 256 * kBlock, 0, 0);
    const double bytes = 4 * static_cast<double>(large.elements());
    simulation.slow_links = {{1, kSlow}};
    CHECK(iteration(large, simulation) ==
          about(ring_time({.beta = beta(kSlow)}, p, bytes, bytes), 0.03));
  }
}

TEST_CASE("closed forms: a fast link within nodes makes the ring faster" *
          doctest::skip(!has_virtual_time())) {
  constexpr double kCompute = 2e-3;
  constexpr LinkSpeed kInner{.bytes_per_s = kLink.bytes_per_s * 20, .latency_s = 2e-6};
  for (const int p : {4, 6, 8}) {
    CAPTURE(p);
    const Profile profile = net(1, p * kBlock, kCompute / 2, kCompute / 2);
    const Profile large = net(4, p * 256 * kBlock, 0, 0);
    Simulation simulation{.algo = "d-sync", .workers = p, .link = kLink};
    const double apart = iteration(profile, simulation);
    const double large_apart = iteration(large, simulation);

    // With the same link, nodes change nothing: in a ring, one rank of a node sends to another
    // node, and one receives.
    simulation.ranks_per_node = 2;
    simulation.inner = kLink;
    CHECK(iteration(profile, simulation) == apart);

    simulation.inner = kInner;
    const double nodes = iteration(profile, simulation);
    CHECK(nodes == exactly(by_hand(p, kCompute,
                                   [&](int a, int b) { return a / 2 == b / 2 ? kInner : kLink; })));
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

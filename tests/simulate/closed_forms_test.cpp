// Simulated runs beside what the papers' equations say.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "base/virtual_time.h"
#include "dist/schedule/merge.h"
#include "dist/timing/model.h"
#include "tests/simulate/closed_forms.h"

using namespace tandem;
using namespace tandem::test;

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
        const Profile profile =
            equal_tensors(1, p * kBlock, compute_s / 3, compute_s * 2 / 3, kHost);
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
        const NetworkCost cost{.alpha = alpha(kGigabit),
                               .beta = beta(kGigabit),
                               .gamma = kHost.add / sizeof(float),
                               .sync = once};
        const double communication = ring_time(cost, p, n, n_wire);

        Simulation simulation{
            .algo = "d-sync", .compress = compress, .workers = p, .link = kGigabit};
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
      ring_time({.alpha = alpha(kGigabit), .beta = beta(kGigabit)}, p, kBytes, kBytes);
  for (const int k : {2, 3, 12})
    for (const double compute : {0.1, 0.8, 0.9, 0.95, 1.0, 1.1}) {
      CAPTURE(k);
      CAPTURE(compute);
      const Profile profile = equal_tensors(1, p * kBlock, 0, compute * communication);
      const Simulation simulation{
          .algo = "pipe-sgd", .options = {{"--pipe-k", k}}, .workers = p, .link = kGigabit};
      CHECK(iteration(profile, simulation) == exactly(std::max(1.0, compute) * communication));
    }
}

TEST_CASE("closed forms: long gradients hide latencies that Eq. 5 counts" *
          doctest::skip(!has_virtual_time())) {
  for (const int p : {2, 4, 8}) {
    CAPTURE(p);
    const Profile profile = equal_tensors(4, p * 64 * kBlock, 0, 0);
    const double n = 4 * static_cast<double>(profile.elements());
    const double seconds = iteration(profile, {.algo = "d-sync", .workers = p, .link = kGigabit});
    CHECK(seconds < ring_time({.alpha = alpha(kGigabit), .beta = beta(kGigabit)}, p, n, n));
    CHECK(seconds > ring_time({.beta = beta(kGigabit)}, p, n, n));
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
      Profile profile = equal_tensors(pieces, p * kBlock, 1e-3, 0, kHost);
      profile.tensors.back().backward_s = 2e-3;
      const double elements = static_cast<double>(profile.elements()), n = 4 * elements;
      // Only the update of the last piece does not overlap with communication.
      const ComputeCost compute{
          .update = elements / pieces * kHost.update, .forward = 1e-3, .backward = 2e-3};
      const NetworkCost cost{.alpha = alpha(kGigabit),
                             .beta = beta(kGigabit),
                             .gamma = kHost.add / sizeof(float),
                             .sync = elements / pieces * kHost.check};
      CHECK(iteration(profile, {.algo = "wfbp", .workers = p, .link = kGigabit}) ==
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
  const SumCost cost{.a = 2 * (p - 1) * alpha(kGigabit),
                     .b = 2 * share * beta(kGigabit) + share * kHost.add / sizeof(float) +
                          kHost.check / sizeof(float)};
  const double update_s = kElements * kHost.update;  // of one tensor

  for (const double backward_s : {0.3e-3, 3e-3, 6e-3, 30e-3}) {
    CAPTURE(backward_s);
    const Profile profile = equal_tensors(kTensors, kElements, kForward, backward_s, kHost);
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
    Simulation simulation{.algo = "wfbp", .workers = p, .link = kGigabit};
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

// ---- Local SGD

TEST_CASE("closed forms: local-sgd averages once per period" * doctest::skip(!has_virtual_time())) {
  constexpr int p = 4;
  constexpr double kCompute = 3e-3, kBytes = p * kBlockBytes;
  const Profile profile = equal_tensors(1, p * kBlock, kCompute / 3, kCompute * 2 / 3);
  const double communication =
      ring_time({.alpha = alpha(kGigabit), .beta = beta(kGigabit)}, p, kBytes, kBytes);
  for (const int period : {1, 2, 7, 8, 16, 30}) {
    CAPTURE(period);
    Simulation simulation{
        .algo = "local-sgd", .options = {{"--period", period}}, .workers = p, .link = kGigabit};
    CHECK(iteration(profile, simulation) == exactly(kCompute + communication / period));
    // All wait for the slowest, but only then. One message is there before it begins to average.
    simulation.slow_ranks = {{1, 0.5}};
    CHECK(iteration(profile, simulation) == about(2 * kCompute + communication / period, 0.03));
  }
}

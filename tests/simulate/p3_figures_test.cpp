// Simulated runs beside the schedules of Fig. 4 and 6 in P3's paper.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "base/virtual_time.h"
#include "tests/simulate/closed_forms.h"

using namespace tandem;
using namespace tandem::test;

namespace {

constexpr double kUnit = 0.5;  // seconds
constexpr std::int64_t kUnitElements = 1000 * kBlock;
constexpr std::int64_t kFine = 10 * kBlock;  // elements of a short slice

// Three layers; forward and backward of each take one unit.
Profile toy(const std::vector<std::int64_t>& elements, const HostCost& host = {}) {
  Profile profile = equal_tensors(3, 0, 3 * kUnit, 3 * kUnit, host);
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

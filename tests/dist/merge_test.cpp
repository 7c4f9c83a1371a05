#include "dist/schedule/merge.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <numeric>

#include "base/random.h"
#include "dist/strategies.h"

using namespace tandem;

namespace {

Layers random_layers(Random& random, std::size_t count) {
  Layers layers;
  double ready = 0.01;
  for (std::size_t i = 0; i < count; ++i) {
    ready += 1e-4 * static_cast<double>(random.below(100));
    layers.push_back({ready, 4.0 * static_cast<double>(1 + random.below(1'000'000))});
  }
  return layers;
}

// The best of all 2^(n-1) ways to group, found by trying them.
double best_of_all(const Layers& layers, const SumCost& cost) {
  double best = std::numeric_limits<double>::infinity();
  for (unsigned cuts = 0; cuts < 1U << (layers.size() - 1); ++cuts) {
    Groups groups{1};
    for (std::size_t i = 1; i < layers.size(); ++i)
      cuts >> (i - 1) & 1U ? groups.push_back(1) : void(++groups.back());
    best = std::min(best, finish_time(layers, groups, cost));
  }
  return best;
}

}  // namespace

TEST_CASE("merge: finish_time sends one group after the other, when its last layer is ready") {
  const Layers layers{{1, 10}, {2, 20}, {3, 30}, {10, 40}};
  const SumCost cost{.a = 0.5, .b = 0.1};
  CHECK(finish_time(layers, each_alone(layers), cost) == doctest::Approx(10 + 0.5 + 4));
  CHECK(finish_time(layers, all_together(layers), cost) == doctest::Approx(10 + 0.5 + 10));
  CHECK(finish_time(layers, {3, 1}, cost) == doctest::Approx(10 + 0.5 + 4));
  CHECK(finish_time(layers, {1, 3}, cost) == doctest::Approx(10 + 0.5 + 9));
  // The network is still busy when the next group is ready.
  CHECK(finish_time({{1, 10}, {2, 20}}, {1, 1}, {.a = 3, .b = 0.1}) == doctest::Approx(5 + 5));
  // Backward ends earlier if nothing is sent during it.
  CHECK(finish_time(layers, {4}, {.a = 0.5, .b = 0.1, .all = 7, .all_ready = 9}) == 9 + 7);
  CHECK(finish_time(layers, {3, 1}, {.a = 0.5, .b = cost.b, .all = 7, .all_ready = 9}) ==
        doctest::Approx(10 + 0.5 + 4));
  CHECK_THROWS(finish_time(layers, {3}, cost));
  CHECK_THROWS(finish_time(layers, {3, 2}, cost));
}

// The equations of the Pipe-SGD paper and of MG-WFBP, and what follows from them.
TEST_CASE("merge: algorithms are predicted from one trial") {
  const MergePlan measured{.layers = {{1, 10}, {2, 20}, {3, 30}, {10, 40}},
                           .cost = {.a = 0.5, .b = 0.1, .all = 9, .all_ready = 8},
                           .update_s = 1};
  const auto forecast = [&](const char* algo, const StrategyOptions& given = {}) {
    return strategy_named(algo).forecast(measured, given);
  };
  CHECK(forecast("d-sync") == 8 + 9 + 1);
  CHECK(forecast("sync-easgd") == forecast("d-sync"));
  CHECK(forecast("wfbp") == doctest::Approx(10 + 0.5 + 4 + 0.4));
  CHECK(forecast("merge") == doctest::Approx(10 + 0.5 + 4 + 0.4));
  CHECK(forecast("buckets") == forecast("d-sync"));  // all are smaller than a bucket
  CHECK(forecast("pipe-sgd") == 10 + 1);             // computes longer than it communicates
  CHECK(forecast("pipe-sgd", {{"--pipe-k", 1}}) == forecast("d-sync"));
  for (const StrategyInfo& algo : all_strategies()) {
    CAPTURE(algo.name);
    const bool predicted = algo.forecast || algo.measures_until > 0;
    if (algo.sums_gradients() && algo.servers({}) == 0) CHECK(predicted);
  }
}

TEST_CASE("merge: buckets have at least their size, except the last") {
  const Layers layers{{1, 10}, {2, 20}, {3, 30}, {4, 5}, {5, 5}};
  CHECK(of_size(layers, 1) == each_alone(layers));
  CHECK(of_size(layers, 25) == Groups{2, 1, 2});
  CHECK(of_size(layers, 1000) == all_together(layers));
  CHECK(of_size({}, 1000).empty());
}

TEST_CASE("merge: Theorem 1 merges a layer if the next one is ready within a") {
  const SumCost cost{.a = 1, .b = 0};
  CHECK(by_theorem_1({{1, 4}, {1.5, 4}, {4, 4}}, cost) == Groups{2, 1});
  CHECK(by_theorem_1({{1, 4}, {2.5, 4}, {4, 4}}, cost) == Groups{1, 1, 1});
  // The first message ends at 3. The second layer waits for it, so the third one joins it.
  CHECK(by_theorem_1({{1, 4}, {2.5, 4}, {3.5, 4}}, {.a = 1, .b = 0.25}) == Groups{1, 2});
  CHECK(by_theorem_1({}, cost).empty());
}

TEST_CASE("merge: Theorem 1 looks at two layers only, and can delay all others") {
  // Each layer is ready within a of the one before, so all of them are merged.
  const Layers layers{{1, 4}, {2, 4}, {3, 4}, {4, 4}};
  const SumCost cost{.a = 2, .b = 1};
  CHECK(finish_time(layers, each_alone(layers), cost) == 25);
  CHECK(by_theorem_1(layers, cost) == Groups{4});
  CHECK(finish_time(layers, {4}, cost) == 22);
  CHECK(optimal(layers, cost) == Groups{1, 3});
  CHECK(finish_time(layers, {1, 3}, cost) == 21);
}

TEST_CASE("merge: the optimum is the best of all groupings, and never slower than Theorem 1") {
  Random random(3);
  for (int round = 0; round < 60; ++round) {
    const Layers layers = random_layers(random, 1 + random.below(12));
    const SumCost cost{.a = 1e-4 * static_cast<double>(random.below(50)),
                       .b = 1e-10 * static_cast<double>(1 + random.below(50))};
    const Groups groups = optimal(layers, cost);
    CHECK(std::accumulate(groups.begin(), groups.end(), std::size_t{0}) == layers.size());
    const double time = finish_time(layers, groups, cost);
    CHECK(time == doctest::Approx(best_of_all(layers, cost)).epsilon(1e-12));
    CHECK(time <= finish_time(layers, by_theorem_1(layers, cost), cost) + 1e-15);
  }
}

// GoogLeNet on a K80, as the authors of MG-WFBP published it (hclhkbu/B-Caffe): elements and
// microseconds of backward, from the first layer to the last. A layer has weights and a bias.
namespace {

struct Measured {
  double elements, backward_us;
};
const std::vector<Measured> kGoogLeNet = {
    {9472, 14744.1},   {4160, 3778.78},   {110784, 20400},    {12352, 2618.5},    {18560, 2918.11},
    {110720, 6027.2},  {3136, 1898.88},   {12864, 1076.7},    {6208, 1952.67},    {32896, 4281.7},
    {32896, 4250.3},   {221376, 7381.02}, {8256, 2559.49},    {76928, 3027.74},   {16448, 3792.7},
    {92352, 4318.98},  {46208, 2620.58},  {179968, 2939.07},  {7744, 2621.82},    {19264, 858.88},
    {30784, 2120.06},  {65664, 1471.39},  {2098176, 707.904}, {1025024, 469.504}, {82112, 4005.89},
    {57472, 3073.66},  {226048, 3054.11}, {12352, 1722.78},   {38464, 1407.97},   {32832, 2188.29},
    {65664, 3025.79},  {65664, 3129.18},  {295168, 3398.88},  {12352, 1797.18},   {38464, 1437.95},
    {32832, 2492.86},  {57472, 2701.15},  {73920, 3810.69},   {373568, 4847.01},  {16448, 2034.18},
    {51264, 1587.68},  {32832, 2302.34},  {67712, 1753.7},    {2098176, 707.392}, {1025024, 466.88},
    {135424, 5857.86}, {84672, 4419.62},  {461120, 5077.73},  {16960, 1812.29},   {102528, 2574.21},
    {67712, 3334.08},  {213248, 3971.46}, {133312, 3201.18},  {461120, 2031.62},  {26688, 1202.37},
    {102528, 1047.2},  {106624, 2573.66}, {319872, 2842.02},  {159936, 3531.36},  {663936, 2372},
    {40000, 1658.56},  {153728, 1257.98}, {106624, 2528.67},  {1025024, 456.416}};

Layers googlenet() {
  double ready = 0;
  for (const Measured& layer : kGoogLeNet) ready += layer.backward_us / 2 * 1e-6;  // forward
  Layers layers;
  for (auto layer = kGoogLeNet.rbegin(); layer != kGoogLeNet.rend(); ++layer) {
    ready += layer->backward_us * 1e-6;
    layers.push_back({ready, 4 * layer->elements});
  }
  return layers;
}

// A ring of n nodes with the constants of the authors' simulation.
SumCost ring_of(double n) {
  constexpr double kAlpha = 45.25e-6, kBeta = 1.2 / (9.0 * (1 << 30) / 8), kGamma = 160 / 64e9;
  return {.a = 2 * n * kAlpha, .b = (n - 1) / n * (2 * kBeta + kGamma)};
}

}  // namespace

// The table of docs/12-when-to-merge.md.
TEST_CASE("merge: GoogLeNet on a simulated cluster, compared with the paper") {
  struct Row {
    double nodes, each, one, theorem_1, optimum;  // milliseconds
    std::size_t messages, messages_of_optimum;
  };
  const Layers layers = googlenet();
  for (const Row& row : {Row{4, 304.5, 482.7, 302.8, 302.8, 10, 10},
                         {16, 419.0, 528.9, 338.9, 335.0, 6, 6},
                         {64, 708.3, 544.5, 403.9, 366.5, 3, 5},
                         {128, 1080.8, 552.1, 524.8, 391.6, 2, 4},
                         {256, 1823.2, 564.6, 564.6, 420.0, 1, 3}}) {
    CAPTURE(row.nodes);
    const SumCost cost = ring_of(row.nodes);
    const auto ms = [&](const Groups& groups) { return 1e3 * finish_time(layers, groups, cost); };
    const auto rounded = [](double value) { return doctest::Approx(value).epsilon(2e-4); };
    CHECK(ms(each_alone(layers)) == rounded(row.each));
    CHECK(ms(all_together(layers)) == rounded(row.one));
    CHECK(ms(by_theorem_1(layers, cost)) == rounded(row.theorem_1));
    CHECK(ms(optimal(layers, cost)) == rounded(row.optimum));
    CHECK(by_theorem_1(layers, cost).size() == row.messages);
    CHECK(optimal(layers, cost).size() == row.messages_of_optimum);
  }
  // The paper's Fig. 9, 64 nodes: 1.78 times faster than WFBP, 1.35 times faster than one message.
  const SumCost at_64 = ring_of(64);
  const double merged = finish_time(layers, by_theorem_1(layers, at_64), at_64);
  const double each = finish_time(layers, each_alone(layers), at_64);
  const double one = finish_time(layers, all_together(layers), at_64);
  CHECK(each / merged == doctest::Approx(1.75).epsilon(0.002));
  CHECK(one / merged == doctest::Approx(1.35).epsilon(0.002));
}

TEST_CASE("merge: beyond a length, a byte takes less") {
  const SumCost cost{.a = 1, .b = 2, .long_bytes = 10, .long_b = 0.5};
  CHECK(cost(4) == doctest::Approx(9));
  CHECK(cost(10) == doctest::Approx(21));
  CHECK(cost(30) == doctest::Approx(31));
  const Layers layers{{1, 10}, {2, 30}};
  CHECK(finish_time(layers, {1, 1}, cost) == doctest::Approx(1 + 21 + 31));
  CHECK(finish_time(layers, {2}, cost) == doctest::Approx(2 + 36));
}

TEST_CASE("merge: a fit finds a and b") {
  std::vector<SumTime> times;
  for (const double bytes : {8192.0, 65536.0, 4e6}) times.push_back({bytes, 1e-3 + 2e-9 * bytes});
  const SumCost cost = fit(times);
  CHECK(cost.a == doctest::Approx(1e-3));
  CHECK(cost.b == doctest::Approx(2e-9));
  CHECK(fit({{100, 0.5}}).a == doctest::Approx(0.5));  // one size says nothing about b
  CHECK(fit({{100, 0.5}}).b == 0);
  CHECK(fit({{7, 0.3}, {7, 0.4}, {7, 0.7}}).a == doctest::Approx(0.42));
  CHECK(fit({{100, 0}, {200, 0}})(100) == 0);  // in a simulation where sums take no time
}

TEST_CASE("merge: no other line has a smaller largest error than the fit") {
  Random random(5);
  int without_a = 0, without_b = 0;
  for (int trial = 0; trial < 200; ++trial) {
    CAPTURE(trial);
    std::vector<SumTime> times;
    const double slope = random.uniform(-0.2, 1);
    for (int i = 0; i < 2 + trial % 5; ++i) {
      const double bytes = random.uniform(0, 10);
      times.push_back({bytes, std::max(0.1, slope * bytes + random.uniform(-0.5, 2))});
    }
    const auto largest_error = [&](const SumCost& line) {
      double largest = 0;
      for (const auto& [bytes, seconds] : times)
        largest = std::max(largest, std::abs(line(bytes) / seconds - 1));
      return largest;
    };
    const SumCost best = fit(times);
    REQUIRE(best.a >= 0);
    REQUIRE(best.b >= 0);
    without_a += best.a == 0;
    without_b += best.b == 0;
    // The error is convex, so it is smallest where it is smaller than all around.
    for (const double step : {1e-6, 1e-3, 0.1})
      for (int angle = 0; angle < 64; ++angle) {
        const double a = best.a + step * std::cos(angle * std::numbers::pi / 32);
        const double b = best.b + step * std::sin(angle * std::numbers::pi / 32);
        if (a < 0 || b < 0) continue;
        CHECK(largest_error({.a = a, .b = b}) >= largest_error(best) - 1e-12);
      }
  }
  CHECK(without_a > 0);
  CHECK(without_b > 0);
}

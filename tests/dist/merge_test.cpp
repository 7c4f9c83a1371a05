#include "dist/schedule/merge.h"

#include <doctest/doctest.h>

#include <functional>
#include <limits>
#include <numeric>

#include "base/random.h"

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
  CHECK_THROWS(finish_time(layers, {3}, cost));
  CHECK_THROWS(finish_time(layers, {3, 2}, cost));
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

TEST_CASE("merge: a fit finds a and b") {
  std::vector<SumTime> times;
  for (const double bytes : {8192.0, 65536.0, 4e6}) times.push_back({bytes, 1e-3 + 2e-9 * bytes});
  const SumCost cost = fit(times);
  CHECK(cost.a == doctest::Approx(1e-3));
  CHECK(cost.b == doctest::Approx(2e-9));
  CHECK(fit({{100, 0.5}}).a == doctest::Approx(0.5));  // one size says nothing about b
  CHECK(fit({{100, 0.5}}).b == 0);
}

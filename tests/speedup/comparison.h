// A comparison for tests.
#pragma once

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "speedup/plan.h"
#include "speedup/results.h"

namespace tandem::test {

inline std::vector<Algorithm> paper_algorithms() {
  std::vector<Algorithm> all;
  std::ranges::copy_if(all_algorithms(), std::back_inserter(all), &Algorithm::by_default);
  return all;
}

inline Comparison plan() {
  return {.bench = all_benches().front(),
          .workers = {4, 2},
          .links = {"1gbe", "none"},
          .algorithms = paper_algorithms(),
          .iterations = 10,
          .programs = "build"};
}

inline void finish(Cell& cell, std::vector<double> repeats_ms) {
  cell.repeats_ms = std::move(repeats_ms);
  cell.median_ms = 8;
  cell.predicted_ms = 9;
  cell.model = ModelInput{.algo = cell.algo, .workers = 4, .network = {.beta = 1e-9}};
  cell.breakdown = {.compute = 1, .compress = 2, .exposed = 3, .other = 4, .hidden = 5};
  cell.loads = std::vector<Load>(cell.repeats_ms.size(), Load{.others = 0.01, .switches = 3000});
  cell.bytes_per_iteration = 7e6;
  cell.test_accuracy = 0.9;
  cell.curve = {{0.5, 5, 0.6}, {1.0, 10, 0.9}};
  cell.timeline = {{.rank = 1, .communicates = true, .what = "wait", .begin = 1, .end = 2}};
  cell.weights_hash = "abc";
}

}  // namespace tandem::test

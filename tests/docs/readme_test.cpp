// The headline table is that of runs whose results are kept.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/support.h"
#include "train/speedup/results.h"

using namespace tandem;
using namespace tandem::test;

namespace {

// The part of a row that a run makes; `of` has its workers and its link.
std::string columns(const Results& results, const std::string& algorithm, const Cell& of,
                    bool accuracy) {
  const Cell* cell = results.beside(of, algorithm);
  if (!cell) return "| | | |";
  std::string text = fmt::format("| {:.1f} ms | {:.2f}× | {:.2f}× |", cell->iteration_ms(),
                                 results.speedup(*cell, "PS-Sync").value(),
                                 results.speedup(*cell, "D-Sync").value());
  if (accuracy) text += fmt::format(" {:.1f}% ", 100 * cell->test_accuracy);
  return text;
}

}  // namespace

TEST_CASE("docs: the README's table shows the results that are kept") {
  const Results mlp = read_results("docs/results/mnist_mlp/results.json"),
                resnet = read_results("docs/results/gpu-resnet/results.json");
  const std::string readme = read_bytes("README.md");
  for (const Algorithm& algorithm : all_algorithms()) {
    const std::string row =
        fmt::format("| {} {}{}\n", algorithm.name,
                    columns(mlp, algorithm.name, {.workers = 4, .link = "1gbe"}, true),
                    columns(resnet, algorithm.name, {.workers = 4, .link = "10gbe"}, false));
    CAPTURE(row);
    CHECK(readme.find(row) != std::string::npos);
  }
}

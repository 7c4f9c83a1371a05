// The headline table is that of a run whose results are kept.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/support.h"
#include "train/speedup/results.h"

using namespace tandem;
using namespace tandem::test;

TEST_CASE("docs: the README's table shows the results that are kept") {
  const Results results = read_results("docs/results/mnist_mlp/results.json");
  const std::string readme = read_bytes("README.md");
  REQUIRE(results.cells.size() == all_algorithms().size());
  for (const Cell& cell : results.cells) {
    REQUIRE(cell.done());
    const std::string row = fmt::format(
        "| {} | {:.1f} ms | {:.1f} ms | {:.2f}× | {:.2f}× | {:.1f}% | {:.1f} |", cell.name,
        cell.iteration_ms(), cell.predicted_ms.value(), results.speedup(cell, "PS-Sync").value(),
        results.speedup(cell, "D-Sync").value(), 100 * cell.test_accuracy,
        cell.seconds_to(results.target_accuracy).value());
    CAPTURE(row);
    CHECK(readme.find(row) != std::string::npos);
  }
}

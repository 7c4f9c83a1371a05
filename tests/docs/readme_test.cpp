// Checks that the README's tables match the stored results of runs.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "speedup/results_file.h"
#include "speedup/table.h"
#include "tests/support.h"

using namespace tandem;
using namespace tandem::test;

namespace {

// A row of the README.
std::string row(const Results& results, const Cell& cell) {
  const auto seconds = cell.seconds_to(results.target_accuracy);
  return fmt::format(
      "| {} | {} ms | {} | {} | {} | {} | {} |\n", marked_name(cell, "\\*"),
      ms_text(cell.iteration_ms()), times_text(results.speedup(cell, "PS-Sync")),
      times_text(results.speedup(cell, "D-Sync")), times_text(results.speedup_at_same_bits(cell)),
      percent_text(cell.test_accuracy), seconds ? fmt::format("{:.1f} s", *seconds) : kNoValue);
}

}  // namespace

TEST_CASE("docs: the README's tables show the stored results") {
  const std::string readme = read_bytes("README.md");
  for (const char* name : {"mnist_mlp", "gpu-cifar_cnn"}) {
    const Results results = read_results(fmt::format("docs/results/{}/results.json", name));
    for (const Cell& cell : results.cells) {
      const std::string wanted = row(results, cell);
      CAPTURE(wanted);
      CHECK(readme.find(wanted) != std::string::npos);
    }
  }
}

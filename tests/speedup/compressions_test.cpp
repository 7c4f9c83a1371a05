// Comparisons with --compress: which rows they have, and that codecs can be rows.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "speedup/palette.h"
#include "speedup/plan.h"
#include "speedup/results_file.h"
#include "tests/speedup/comparison.h"
#include "tests/support.h"
#include "train/files.h"

using namespace tandem;
using namespace tandem::test;

namespace {

using Names = std::vector<std::string>;

Names names_of(const std::vector<Algorithm>& rows) {
  Names names;
  for (const Algorithm& row : rows) names.push_back(row.name);
  return names;
}

}  // namespace

TEST_CASE("speedup: --compress chooses the rows of each algorithm that can have them") {
  CHECK(names_of(rows_named({}, {})) == names_of(paper_algorithms()));
  CHECK(names_of(rows_named({}, {"none", "trunc16", "topk:0.01"})) ==
        Names{"PS-Sync", "D-Sync", "D-Sync+T", "D-Sync+topk:0.01", "Pipe-SGD", "Pipe-SGD+T",
              "Pipe-SGD+topk:0.01"});
  CHECK(names_of(rows_named({"Merge"}, {"powersgd:2"})) == Names{"Merge+powersgd:2"});
  CHECK(names_of(rows_named({"D-Sync+T"}, {})) == Names{"D-Sync+T"});
  // A run refuses what is asked for by name; its cell says why.
  CHECK(names_of(rows_named({"PS-Sync"}, {"topk:0.01"})) == Names{"PS-Sync+topk:0.01"});

  const auto refusal = [](const Names& algos, const Names& compressions) {
    return message_of<UserError>([&] { rows_named(algos, compressions); });
  };
  CHECK(refusal({"D-Sync+T"}, {"none"}).starts_with("--algos D-Sync+T: choose from PS-Sync, "));
  CHECK(refusal({"Magic"}, {}).starts_with("--algos Magic: choose from PS-Sync, "));
}

TEST_CASE("speedup: a codec's cell has its command, its colour and its place in the results") {
  Comparison p = plan();
  p.workers = {4}, p.links = {"1gbe"};
  p.algorithms = rows_named({"D-Sync", "Pipe-SGD"}, {"none", "topk:0.01"});
  Results r = p.begin();
  REQUIRE(r.cells.size() == 4);
  const auto command = p.command(r.cells[1]);
  CHECK(std::ranges::count(command, "topk:0.01") == 1);
  for (Cell& cell : r.cells) finish(cell, {1, 2});
  const TemporaryFolder folder;
  write_file(folder / "results.json", to_json(r));
  const Results back = read_results(folder / "results.json");
  REQUIRE(back.cells.size() == 4);
  CHECK(back.cells[1].name == "D-Sync+topk:0.01");
  CHECK(back.cells[1].compress == "topk:0.01");
  CHECK(algorithm_colour("D-Sync+topk:0.01") != kGrey);
  CHECK(algorithm_colour("D-Sync+topk:0.01") != algorithm_colour("D-Sync+onebit"));

  // Continued with other compressions, each row is beside those of its algorithm.
  p.algorithms = rows_named({"D-Sync"}, {"onebit"});
  Names names;
  for (const Cell& cell : p.resume(back).cells) names.push_back(cell.name);
  CHECK(names ==
        Names{"D-Sync", "D-Sync+onebit", "D-Sync+topk:0.01", "Pipe-SGD", "Pipe-SGD+topk:0.01"});
}

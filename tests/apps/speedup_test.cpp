// build/speedup as a person starts it.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>

#include "tests/data/idx_files.h"
#include "tests/support.h"
#include "train/speedup/results.h"

using namespace tandem::test;

namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("speedup program: runs a plan, keeps what is finished, and tells what failed") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "digits");
  write_mnist(folder / "digits", 200, 100);
  const std::string out = folder / "out";
  const auto speedup = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"--data",       folder / "digits",
                                      "--workers",    "2",
                                      "--iterations", "4",
                                      "--repeats",    "1",
                                      "--tests",      "2",
                                      "--out",        out};
    words.insert(words.end(), more.begin(), more.end());
    return run_program("speedup", words);
  };
  const ProgramResult first = speedup({"--link", "1gbe", "--algos", "D-Sync,Pipe-SGD+Q"});
  CAPTURE(first.out);
  CAPTURE(first.err);
  REQUIRE(first.status == 0);
  CHECK(has(first.out, "[2/2] Pipe-SGD+Q, 2 workers, link 1gbe"));
  for (const char* file : {"results.json", "results.csv", "table.md", "report.html", "accuracy.svg",
                           "accuracy.png", "breakdown.svg"})
    CHECK(std::filesystem::file_size(folder / "out" / file) > 0);
  const tandem::Results results = tandem::read_results(folder / "out/results.json");
  REQUIRE(results.cells.size() == 2);
  const tandem::Cell& cell = results.cells[1];
  REQUIRE(cell.curve.size() == 2);
  CHECK(cell.curve[1].iteration == 4);
  CHECK(cell.curve[1].wall_s > cell.curve[0].wall_s);
  CHECK(cell.test_accuracy == cell.curve[1].accuracy);
  CHECK(cell.timeline.size() > 10);
  CHECK(cell.bytes_per_iteration > 0);

  // Only what is new is run.
  const ProgramResult more = speedup({"--link", "1gbe,10gbe", "--algos", "D-Sync,Pipe-SGD+Q"});
  CHECK(more.status == 0);
  CHECK_FALSE(has(more.out, "[1/4]"));
  CHECK(has(more.out, "[3/4] D-Sync, 2 workers, link 10gbe"));

  const ProgramResult other = speedup({"--seed", "2"});
  CHECK(other.status == 2);
  CHECK(has(other.err, "holds results for --seed 1, not 2"));

  const ProgramResult failing =
      speedup({"--again", "--algos", "PS-Sync,D-Sync", "--batch", "1000"});
  CHECK(failing.status == 1);
  CHECK(has(failing.out, "failed: --batch 1000 is larger than the training set"));
  CHECK(has(failing.err, "2 of 2 cells failed"));
}

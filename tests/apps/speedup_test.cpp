// build/speedup as a user starts it.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>

#include "dist/strategies.h"
#include "speedup/results_file.h"
#include "tests/data/idx_files.h"
#include "tests/data/image_files.h"
#include "tests/support.h"
#include "train/file_lock.h"

using namespace tandem::test;

namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("speedup program: runs a plan, keeps finished cells, and reports failed ones") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "digits");
  write_mnist(folder / "digits", 200, 100);
  const std::string out = folder / "out";
  const auto speedup = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"--data",       folder / "digits",
                                      "--workers",    "2",
                                      "--iterations", "4",
                                      "--repeats",    "2",
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
  CHECK(cell.repeats_ms.size() == 2);
  CHECK(cell.loads.size() == 2);
  for (const tandem::Cell& each : results.cells) {
    const tandem::Breakdown& b = each.breakdown;
    CHECK(b.compute + b.compress + b.exposed + b.other == doctest::Approx(each.iteration_ms()));
    CHECK(std::min({b.compute, b.exposed, b.other}) >= 0);
    REQUIRE(each.model);
    CHECK(*tandem::predicted_iteration(*each.model) > 0);
  }
  CHECK(results.cells[0].breakdown.compress == 0);  // plain adding is none
  CHECK(cell.bytes_per_iteration > 0);

  // Only what is new is run.
  const ProgramResult more = speedup({"--link", "1gbe,10gbe", "--algos", "D-Sync"});
  CHECK(more.status == 0);
  CHECK_FALSE(has(more.out, "[1/3]"));
  CHECK(has(more.out, "[3/3] D-Sync, 2 workers, link 10gbe"));

  const ProgramResult other = speedup({"--seed", "2"});
  CHECK(other.status == 2);
  CHECK(has(other.err, "holds results with --seed 1, not 2"));

  const ProgramResult failing =
      speedup({"--again", "--algos", "PS-Sync,D-Sync", "--batch", "1000"});
  CHECK(failing.status == 1);
  CHECK(has(failing.out, "failed: --batch 1000 is larger than the training set"));
  CHECK(has(failing.err, "2 of 2 cells failed"));
}

TEST_CASE("speedup program: compares synchronous and asynchronous algorithms in one report") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "digits");
  write_mnist(folder / "digits", 200, 100);
  const std::string links = kSanitized ? "1gbe" : "1gbe,10gbe";
  const auto speedup = [&](const std::string& algos) {
    return run_program("speedup", {"--data", folder / "digits", "--workers", "2", "--iterations",
                                   "9", "--repeats", "1", "--tests", "3", "--link", links,
                                   "--algos", algos, "--out", folder / "out"});
  };
  REQUIRE(speedup("D-Sync,ASP").status == 0);
  const tandem::Results before = tandem::read_results(folder / "out/results.json");
  const ProgramResult r = speedup("D-Sync,Local-SGD,ASP,GoSGD");
  CAPTURE(r.out);
  CAPTURE(r.err);
  REQUIRE(r.status == 0);
  CHECK(has(r.out, "Asynchronous: ASP, GoSGD. "));
  CHECK(has(read_bytes(folder / "out/report.html"), "<dt>ASP, GoSGD</dt>"));
  const tandem::Results results = tandem::read_results(folder / "out/results.json");
  REQUIRE(results.cells.size() == (kSanitized ? 1 : 2) * 4);
  CHECK(results.target_accuracy > 0);
  for (const tandem::Cell& cell : results.cells) {
    CAPTURE(cell.name);
    REQUIRE(cell.curve.size() == 3);
    CHECK(cell.curve[0].iteration == 3);
    CHECK((0 < cell.curve[0].wall_s && cell.curve[0].wall_s < cell.curve[1].wall_s &&
           cell.curve[1].wall_s < cell.curve[2].wall_s));
    CHECK(cell.curve[2].accuracy == cell.test_accuracy);
    CHECK(cell.seconds_to(results.target_accuracy).has_value());
    const bool asynchronous = tandem::strategy_named(cell.algo).asynchronous();
    CHECK(cell.predicted_ms.has_value() == !asynchronous);
    CHECK(!cell.timeline.empty());
    // What was finished before was not run again.
    if (const tandem::Cell* earlier = before.beside(cell, cell.name))
      CHECK(earlier->repeats_ms == cell.repeats_ms);
  }
}

TEST_CASE("speedup program: times a few iterations with options for the benchmark") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "digits");
  write_mnist(folder / "digits", 200, 100);
  const auto speedup = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"--data",       folder / "digits",
                                      "--workers",    "2",
                                      "--iterations", "12",
                                      "--timed",      "4",
                                      "--repeats",    "1",
                                      "--tests",      "3",
                                      "--out",        folder / "out"};
    words.insert(words.end(), more.begin(), more.end());
    return run_program("speedup", words);
  };
  const std::string algos = "PS-Sync,D-Sync,Pipe-SGD";
  const ProgramResult ran = speedup(
      {"--link", "1gbe", "--algos", algos, "--", "--warmup-iterations", "5", "--lr", "1e-9"});
  CAPTURE(ran.out);
  CAPTURE(ran.err);
  REQUIRE(ran.status == 0);
  const tandem::Results r = tandem::read_results(folder / "out/results.json");
  REQUIRE(r.cells.size() == 3);
  for (const tandem::Cell& cell : r.cells) {
    REQUIRE(cell.curve.size() == 3);
    CHECK(cell.curve[2].iteration == 12);
    CHECK(cell.curve[2].accuracy == cell.test_accuracy);
    CHECK(cell.curve[0].accuracy == cell.test_accuracy);  // --lr has come through: nothing changes
  }
  CHECK(r.cells[1].curve[2].wall_s == doctest::Approx(12 * r.cells[1].iteration_ms() / 1e3));
  CHECK(r.cells[2].warmup == 5);
  CHECK(r.cells[2].curve[2].wall_s ==
        doctest::Approx((5 * r.cells[1].iteration_ms() + 7 * r.cells[2].iteration_ms()) / 1e3));
  CHECK(r.options.ends_with("--warmup-iterations 5 --lr 1e-9"));

  const ProgramResult other = speedup({"--", "--lr", "0.1"});
  CHECK(other.status == 2);
  CHECK(has(other.err, "not '--data"));
  const ProgramResult ours = speedup({"--", "--seed", "2"});
  CHECK(ours.status == 2);
  CHECK(has(ours.err, "give --seed before the --"));
  const ProgramResult gap = speedup({"--optimum", "1.5"});
  CHECK(gap.status == 2);
  CHECK(has(gap.err, "--optimum needs -- --objective"));
  const ProgramResult more = speedup({"--timed", "13"});
  CHECK(more.status == 2);
  CHECK(has(more.err, "--timed 13 is more than --iterations 12"));
}

TEST_CASE("speedup program: names the net that the benchmark trained") {
  const TemporaryFolder folder;
  write_cifar(folder.path(), 4);
  for (const char* what : {"trained", "read again"}) {
    CAPTURE(what);
    const ProgramResult r =
        run_program("speedup", {"--bench",   "resnet",    "--data",       folder.path(),
                                "--workers", "2",         "--iterations", "1",
                                "--repeats", "1",         "--tests",      "1",
                                "--batch",   "2",         "--link",       "none",
                                "--algos",   "D-Sync",    "--out",        folder / "out",
                                "--",        "--dataset", "cifar10"});
    CAPTURE(r.err);
    REQUIRE(r.status == 0);
    CHECK(has(r.out, "ResNet-20 on "));
  }
}

TEST_CASE("speedup program: an output that fails does not stop the table or the others") {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "digits");
  write_mnist(folder / "digits", 200, 100);
  std::filesystem::create_directories(folder / "out/table.md");  // in the way of the file
  std::filesystem::create_symlink("/dev/full", folder / "out/results.json");
  const std::vector<std::string> words = {
      "--data",  folder / "digits", "--workers",   "2",         "--link", "none",    "--iterations",
      "2",       "--tests",         "1",           "--repeats", "1",      "--algos", "D-Sync",
      "--again", "--out",           folder / "out"};
  {
    const tandem::LockFile other(folder / "out/.lock");
    const ProgramResult second = run_program("speedup", words);
    CHECK(second.status == 2);
    CHECK(has(second.err, "another speedup is writing to " + (folder / "out").string()));
  }
  const ProgramResult r = run_program("speedup", words);
  CAPTURE(r.err);
  CHECK(r.status == 1);
  CHECK(has(r.out, "over D-Sync"));
  CHECK(has(r.err, "results.json: cannot write"));
  CHECK(has(r.err, "No space left on device; the run continues without it\n"));
  CHECK(has(r.err, "speedup: not everything could be written: results.json: cannot write"));
  CHECK(has(r.err, "table.md: cannot open"));
  CHECK(std::filesystem::file_size(folder / "out/results.csv") > 0);
  CHECK(std::filesystem::file_size(folder / "out/report.html") > 0);
  CHECK_FALSE(std::filesystem::exists(folder / "out/.lock"));
}

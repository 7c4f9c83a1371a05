// Comparisons: their cells and commands, and how they continue with earlier results.
#include "speedup/plan.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "tests/speedup/comparison.h"
#include "tests/support.h"

using namespace tandem;
using namespace tandem::test;

namespace {

bool has(const std::vector<std::string>& words, const std::string& word) {
  return std::ranges::find(words, word) != words.end();
}

// Of plan(): two cells are finished, one has failed.
Results interrupted() {
  Results r = plan().begin();
  finish(r.cells[0], {1});
  finish(r.cells[8], {2});
  r.cells[1].failure = "no";
  return r;
}

}  // namespace

TEST_CASE("speedup: a plan has a cell for every number of workers, link and algorithm") {
  const Comparison p = plan();
  const Results r = p.begin();
  REQUIRE(r.cells.size() == 2 * 2 * 7);
  CHECK(r.cells[0].name == "PS-Sync");
  CHECK(r.cells[0].workers == 4);
  CHECK(r.cells[7].link == "none");
  CHECK(r.cells[27].name == "Pipe-SGD+Q");
  CHECK(r.cells[27].workers == 2);

  const auto threads = p.command(r.cells[6]);
  CHECK(threads[0] == "build/mnist_mlp");
  for (const char* word : {"pipe-sgd", "quant8", "1gbe", "--workers", "--warmup-epochs"})
    CHECK(has(threads, word));
  CHECK_FALSE(has(p.command(r.cells[1]), "--warmup-epochs"));

  Comparison mpi = p;
  mpi.mpiexec = {"mpiexec", "-f", "hosts"};
  auto processes = mpi.command(r.cells[0]);
  processes.resize(6);
  CHECK(processes ==
        std::vector<std::string>{"mpiexec", "-f", "hosts", "-n", "5", "build/mnist_mlp"});
  CHECK(mpi.command(r.cells[1])[4] == "4");
  CHECK(has(mpi.command(r.cells[1]), "--workers"));
  // A server more, if it is asked for.
  const Cell p3{.algo = "p3", .workers = 4};
  for (const auto& [words, ranks] : {std::pair{std::vector<std::string>{}, "4"},
                                     {{"--via", "servers"}, "5"},
                                     {{"--via=servers"}, "5"},
                                     {{"--via", "ring"}, "4"}}) {
    mpi.options = words;
    CHECK(mpi.command(p3)[4] == std::string(ranks));
  }
}

TEST_CASE("speedup: a program gets the options that its algorithm has") {
  Comparison p = plan();
  p.options = {"--warmup-epochs", "5", "--lr", "0.1", "--pipe-k=3"};
  const Results r = p.begin();
  const auto d_sync = p.command(r.cells[1]), pipe = p.command(r.cells[4]);
  const auto ends_with = [](const std::vector<std::string>& words,
                            const std::vector<std::string>& end) {
    return std::ranges::equal(std::span(words).last(end.size()), end);
  };
  CHECK(ends_with(d_sync, {"--lr", "0.1"}));
  CHECK_FALSE(has(d_sync, "5"));
  CHECK_FALSE(has(d_sync, "--pipe-k=3"));
  // After the default, which is that the pipeline opens at once: the last one counts.
  CHECK(ends_with(pipe,
                  {"--warmup-epochs", "0", "--warmup-epochs", "5", "--lr", "0.1", "--pipe-k=3"}));
  CHECK(r.options == "--warmup-epochs 5 --lr 0.1 --pipe-k=3");
  p.options.back() = "--pipe-k=2";
  CHECK(message_of<UserError>([&] { p.resume(r); }).starts_with("it holds results with options "));

  CHECK_NOTHROW(check_handed_on({"--lr", "0.1"}));
  CHECK(message_of<UserError>([] {
          check_handed_on({"--lr", "0.1", "--batch=4"});
        }) == "give --batch before the --: the comparison passes it to the program itself");
  CHECK(message_of<UserError>([] {
          check_handed_on({"--save", "x"});
        }) == "--save cannot be given after the --: the comparison sets it itself");

  CHECK(p.deterministic());
  p.device = DeviceKind::cuda;
  CHECK_FALSE(p.deterministic());
  p.options.push_back("--deterministic");
  CHECK(p.deterministic());
}

TEST_CASE("speedup: a link changes the weights of asynchronous algorithms only") {
  for (const char* algo : {"d-sync", "ps-sync", "pipe-sgd", "local-sgd"})
    CHECK(link_of_tests({.algo = algo, .link = "1gbe"}) == "none");
  for (const char* algo : {"asp", "ssp", "easgd", "gosgd", "ad-psgd"})
    CHECK(link_of_tests({.algo = algo, .link = "1gbe"}) == "1gbe");
}

TEST_CASE("speedup: finished cells are kept, failed ones and those of other plans are not") {
  Comparison p = plan();
  const Results r = interrupted();
  std::swap(p.links[0], p.links[1]);
  p.algorithms.pop_back();
  const Results again = p.resume(r);
  REQUIRE(again.cells.size() == 2 * 2 * 6);
  CHECK(again.cells[6].repeats_ms == std::vector<double>{1});
  CHECK(again.cells[1].repeats_ms == std::vector<double>{2});
  CHECK(std::ranges::count_if(again.cells, &Cell::done) == 2);
  CHECK(again.cells[7].failure.empty());

  p.iterations = 11;
  CHECK(message_of<UserError>([&] { p.resume(r); }) ==
        "it holds results with --iterations 10, not 11");
}

TEST_CASE(
    "speedup: finished cells of other workers, links and algorithms stay, each in its place") {
  Comparison p = plan();
  p.links = {"10gbe", "none"};
  p.workers = {4};
  p.algorithms = {*std::ranges::find(all_algorithms(), "D-Sync+Q", &Algorithm::name)};
  const Results other = p.resume(interrupted());
  REQUIRE(other.cells.size() == 2 + 2);
  CHECK(other.cells[0].link == "10gbe");
  CHECK(other.cells[1].repeats_ms == std::vector<double>{2});
  CHECK(other.cells[2].name == "D-Sync+Q");  // of link none too
  CHECK(other.cells[3].repeats_ms == std::vector<double>{1});
  REQUIRE(other.settings().size() == 3);
}

TEST_CASE("speedup: only a finished comparison may come from another machine") {
  const Comparison p = plan();
  Results r = interrupted();
  r.environment.processor = "abacus";
  CHECK(message_of<UserError>([&] {
          p.resume(r);
        }).starts_with("it holds results with the processor abacus, not "));
  Comparison all = p;
  all.workers = {4}, all.links = {"1gbe"}, all.algorithms = {all_algorithms()[0]};
  CHECK(all.resume(r).environment.processor == "abacus");
}

TEST_CASE("speedup: disturbed cells are timed again on request; test results stay") {
  Comparison p = plan();
  Results r = interrupted();
  r.cells[0].loads[0].others = 0.5;
  CHECK(p.resume(r).cells[0].done());
  p.again_disturbed = true;
  const Results again = p.resume(r);
  REQUIRE(again.cells.size() == r.cells.size());
  CHECK_FALSE(again.cells[0].done());
  CHECK(again.cells[0].curve.size() == 2);
  CHECK(again.cells[0].weights_hash == "abc");
  CHECK(again.cells[0].loads.empty());
  CHECK(again.cells[8].done());
}

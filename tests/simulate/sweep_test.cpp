#include "simulate/sweep.h"

#include <doctest/doctest.h>

#include <numeric>

#include "base/error.h"
#include "base/virtual_time.h"
#include "dist/block.h"
#include "speedup/results_file.h"
#include "speedup/table.h"
#include "tests/json.h"
#include "tests/support.h"

using namespace tandem;
using namespace tandem::test;

namespace {

Sweep sweep() {
  Sweep s;
  s.profile.net = "A net";
  s.profile.source = "a test";
  s.profile.batch = 16;
  for (const char* name : {"a", "b", "c"})
    s.profile.tensors.push_back({name, 300'000, 0.002, 0.004});
  s.workers = {2, 4};
  s.links = {"1gbe", "10gbe"};
  s.algos = {"d-sync", "ps-sync", "pipe-sgd"};
  s.compressors = {"none", "quant8"};
  s.shared.iterations = 20;
  s.keep_timelines = true;
  s.what = "a test";
  return s;
}

}  // namespace

TEST_CASE("sweep: every cell gets its time, throughput, breakdown and timeline" *
          doctest::skip(!has_virtual_time())) {
  const Sweep s = sweep();
  Results results = s.begin();
  CHECK(results.cells.size() == 24);
  for (Cell& cell : results.cells) {
    CHECK_FALSE(cell.done());
    const SimulatedRun run = s.run(cell);
    CAPTURE(cell.name);
    CHECK(cell.done());
    CHECK(cell.iteration_ms() == doctest::Approx(1e3 * run.mean_s()));
    CHECK(cell.simulated_ranks.starts_with("all"));
    CHECK(cell.breakdown.compute == doctest::Approx(18).epsilon(0.001));
    CHECK(cell.breakdown.iteration() == doctest::Approx(cell.iteration_ms()).epsilon(0.01));
    CHECK_FALSE(cell.timeline.empty());
    // A ring sends 2(p-1)/p of the gradient per worker; a server gets and sends all of it.
    if (cell.algo != "ps-sync" && cell.compress == "none")
      CHECK(cell.bytes_per_iteration ==
            doctest::Approx(2.0 * (cell.workers - 1) * 900'000 * 4).epsilon(0.01));
  }
  const Results read = [&] {
    const TemporaryFolder folder;
    write_bytes(folder / "results.json", to_json(results));
    return read_results(folder / "results.json");
  }();
  CHECK(to_json(read) == to_json(results));
  CHECK(to_text(results).find("samples/s") != std::string::npos);
  CHECK(to_text(results).find("accuracy") == std::string::npos);
}

TEST_CASE("sweep: a sweep continues, and refuses the results of another one" *
          doctest::skip(!has_virtual_time())) {
  Sweep s = sweep();
  Results results = s.begin();
  s.run(results.cells.front());
  s.workers = {4};  // the others are kept
  const auto continued = [&] {
    Results now = s.begin();
    continue_sweep(results, now);
    return now;
  };
  const Results more = continued();
  CHECK(more.cells.size() == 13);
  CHECK(std::ranges::count_if(more.cells, &Cell::done) == 1);
  s.shared.seed = 2;
  CHECK(message_of<UserError>(continued) == "it holds results with --seed 1, not 2");
  s.shared.seed = 1;
  s.profile.net = "Another net";
  CHECK(message_of<UserError>(continued) == "it holds results with the net A net, not Another net");
  results.simulated = false;
  CHECK(message_of<UserError>(continued) == "it holds measured results, not simulated ones");
}

TEST_CASE("sweep: many alike ranks are simulated by one" * doctest::skip(!has_virtual_time())) {
  Sweep s = sweep();
  s.workers = {128};
  for (Profile::Tensor& tensor : s.profile.tensors) tensor.elements = 128 * kBlock;  // equal shares
  s.links = {"10gbe"};
  s.algos = {"d-sync"};
  s.compressors = {"none"};
  const auto simulated = [&] {
    Results results = s.begin();
    s.run(results.cells.front());
    return results.cells.front();
  };
  const Cell one = simulated();
  CHECK(one.simulated_ranks == "one: they are alike");
  s.mode = SimulationMode::message;
  const Cell all = simulated();
  CHECK(all.simulated_ranks == "all: --mode message");
  CHECK(one.iteration_ms() == all.iteration_ms());
  CHECK(one.bytes_per_iteration == all.bytes_per_iteration);
  s.mode = SimulationMode::folded;
  s.shared.slow_ranks[3] = 0.5;
  CHECK(message_of<UserError>([&] { simulated(); }) ==
        "d-sync: one rank cannot stand for all, because some are slower");
}

TEST_CASE("sweep: what does not fit is refused before anything runs") {
  const auto refusal = [](auto&& change) {
    Sweep s = sweep();
    change(s);
    return message_of<UserError>([&] { s.begin(); });
  };
  CHECK(refusal([](Sweep& s) { s.algos = {"single"}; }) ==
        "--algo single: it has one worker, so there is nothing to simulate");
  CHECK(refusal([](Sweep& s) { s.shared.slow_ranks[5] = 0.5; }) ==
        "--slow-rank 5: there are 2 ranks");
  CHECK(refusal([](Sweep& s) { s.shared.slow_links[2] = parse_link("1gbe"); }) ==
        "--slow-link 2: there are 2 ranks");
  CHECK(refusal([](Sweep& s) { s.profile.host["none"] = {}; }) ==
        "the profile does not say what a host needs for --compress quant8");
}

TEST_CASE("sweep: the last node may have fewer ranks") {
  Sweep s = sweep();
  s.shared.ranks_per_node = 3;
  CHECK(s.begin().cells.front().workers % 3 != 0);
}

TEST_CASE("sweep: the quantiles of a normal distribution") {
  const std::vector<double> spread = normal_spread(0.05);
  double mean = 0, squares = 0;
  for (const double value : spread) mean += value / static_cast<double>(spread.size());
  for (const double value : spread)
    squares += (value - mean) * (value - mean) / static_cast<double>(spread.size());
  CHECK(mean == doctest::Approx(1));
  CHECK(std::sqrt(squares) == doctest::Approx(0.05).epsilon(0.02));
  CHECK(std::ranges::is_sorted(spread));
}

TEST_CASE("sweep: an explanation lists one iteration, and a trace all of them" *
          doctest::skip(!has_virtual_time())) {
  Sweep s = sweep();
  s.workers = {4};
  s.links = {"1gbe"};
  s.algos = {"d-sync"};
  s.compressors = {"none"};
  Results results = s.begin();
  const SimulatedRun run = s.run(results.cells.front());
  const std::string text = explanation(run);
  CHECK(text.find("compute       forward") != std::string::npos);
  CHECK(text.find("compute       backward") != std::string::npos);
  CHECK(text.find("communication communicate") != std::string::npos);
  const auto trace = json_of(trace_of(run));
  std::size_t forwards = 0;
  for (const auto& event : trace.at("traceEvents"))
    forwards += event.at("name") == "forward" && event.at("pid") == 0;
  CHECK(forwards == run.ends.size());
}

// Runs whose workers do not wait for each other: what is tested, when, and what the metrics say.
#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <sstream>

#include "dist/strategies.h"
#include "tests/json.h"
#include "tests/support.h"
#include "tests/train/digits.h"
#include "tests/train/resuming.h"
#include "train/checkpoint.h"
#include "train/trainer.h"

using namespace tandem;
using namespace tandem::test;

namespace {

TrainOptions options(const std::string& algo, int workers) {
  TrainOptions o;
  o.algo = algo;
  o.workers = workers;
  o.batch = 50;
  o.iterations = 25;  // an epoch has 20
  o.test_every = 10;
  o.threads = 1;
  o.quiet = true;
  return o;
}

// Calls check(algo) for every asynchronous algorithm.
template <class Check>
void for_each_asynchronous(const Check& check) {
  for (const StrategyInfo& algo : all_strategies()) {
    if (!algo.asynchronous()) continue;
    CAPTURE(algo.name);
    check(algo);
  }
}

}  // namespace

TEST_CASE("asynchronous: metrics have all losses, and tests of the weights at their time") {
  const TemporaryFolder folder;
  for_each_asynchronous([&](const StrategyInfo& algo) {
    TrainOptions o = options(algo.name, 3);
    if (algo.make_server) o.algo_options["--servers"] = 2;
    o.metrics = folder / algo.name;
    const Summary summary = train(mlp_on_digits(), o);
    std::vector<std::int64_t> losses, tests;
    std::vector<double> times, accuracies, mean_losses;
    std::istringstream lines(read_bytes(o.metrics));
    for (std::string line; std::getline(lines, line);) {
      const auto json = json_of(line);
      if (!json.contains("test_accuracy")) {
        losses.push_back(json["iteration"]);
        CHECK(std::isfinite(json["loss"].get<double>()));
        continue;
      }
      tests.push_back(json["iteration"]);
      times.push_back(json["wall_s"]);
      accuracies.push_back(json["test_accuracy"]);
      mean_losses.push_back(json["train_loss"]);
    }
    REQUIRE(losses.size() == 25);
    for (std::size_t i = 0; i < losses.size(); ++i)
      CHECK(losses[i] == static_cast<std::int64_t>(i) + 1);
    REQUIRE(tests == std::vector<std::int64_t>{10, 20, 25});
    CHECK((0 < times[0] && times[0] < times[1] && times[1] < times[2]));
    CHECK(times[2] == doctest::Approx(summary.wall_s).epsilon(1e-3));
    CHECK(mean_losses[2] < mean_losses[0]);
    CHECK(accuracies[2] == summary.test_accuracy);
  });
}

TEST_CASE("asynchronous: asp with one worker is single, to the last bit and metric") {
  const TemporaryFolder folder;
  const auto run = [&](const char* algo, const StrategyOptions& algo_options, const char* name) {
    TrainOptions o = options(algo, 1);
    o.algo_options = algo_options;
    o.weight_decay = 0.01;
    o.metrics = folder / name;
    return train(mlp_on_digits(), o).weights_hash;
  };
  const std::string single = run("single", {}, "single");
  for (const std::int64_t push : {0, 1}) {  // after backward, and during it
    CHECK(run("asp", {{"--push", push}}, "asp") == single);
    CHECK(metrics_in(folder / "asp") == metrics_in(folder / "single"));
  }
}

TEST_CASE("asynchronous: without iterations, the first weights are tested") {
  double accuracy = -1;
  for_each_asynchronous([&](const StrategyInfo& algo) {
    TrainOptions o = options(algo.name, 2);
    o.iterations = 0;
    o.epochs = 0;
    o.test_every = 0;
    const Summary summary = train(mlp_on_digits(), o);
    CHECK(summary.tested);
    if (accuracy >= 0) CHECK(summary.test_accuracy == accuracy);
    accuracy = summary.test_accuracy;
  });
}

TEST_CASE("asynchronous: checkpoints that are due by time are complete, and runs resume there") {
  const TemporaryFolder folder;
  for_each_asynchronous([&](const StrategyInfo& algo) {
    TrainOptions o = options(algo.name, 2);
    o.checkpoint = folder / algo.name;
    o.checkpoint_seconds = 1e-3;
    train(mlp_on_digits(), o);
    const auto saved = checkpoints_in(o.checkpoint);
    REQUIRE(!saved.empty());
    o.resume = checkpoint_folder(o.checkpoint, saved.back());
    o.checkpoint = "";
    const Summary resumed = train(mlp_on_digits(), o);
    CHECK(resumed.iterations == 25);
    CHECK(resumed.starts == std::vector<std::int64_t>{0, saved.back()});
  });
}

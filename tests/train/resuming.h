// A run that continues from a checkpoint, compared with one that was never interrupted.
#pragma once

#include <doctest/doctest.h>

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "base/random.h"
#include "dist/compress/compressor.h"
#include "dist/strategies.h"
#include "tests/json.h"
#include "tests/support.h"
#include "train/checkpoint.h"
#include "train/trainer.h"

namespace tandem::test {

// The metrics without times, which differ from run to run.
inline std::vector<nlohmann::json> metrics_in(const std::filesystem::path& file) {
  std::vector<nlohmann::json> lines;
  std::istringstream text(read_bytes(file));
  for (std::string line; std::getline(text, line);) {
    nlohmann::json json = json_of(line);
    json.erase("iteration_ms");
    json.erase("wall_s");
    lines.push_back(json);
  }
  return lines;
}

// Trains three times: undisturbed, with checkpoints at a random interval, and from a random one of
// them. All must give the same bits and metrics, if a run `repeats` at all.
inline void check_resumes(const Task& task, TrainOptions o, Random& random, bool repeats) {
  const TemporaryFolder folder;
  o.metrics = folder / "undisturbed.jsonl";
  const Summary undisturbed = train(task, o);

  o.metrics = folder / "resumed.jsonl";
  o.checkpoint = folder / "checkpoints";
  o.checkpoint_every = 1 + static_cast<std::int64_t>(random.below(6));
  o.keep = static_cast<int>(o.iterations);
  const Summary saving = train(task, o);
  const auto saved = checkpoints_in(o.checkpoint);
  REQUIRE(!saved.empty());
  REQUIRE(std::ssize(saved) == (o.iterations - 1) / o.checkpoint_every);

  const std::int64_t from = saved[random.below(saved.size())];
  CAPTURE(from);
  o.resume = checkpoint_folder(o.checkpoint, from);
  o.checkpoint = "";
  const Summary resumed = train(task, o);
  CHECK(std::ssize(resumed.iteration_ms) == o.iterations);
  CHECK(resumed.starts == std::vector<std::int64_t>{0, from});
  const auto metrics = metrics_in(o.metrics), expected = metrics_in(folder / "undisturbed.jsonl");
  CHECK(metrics.size() == expected.size());
  if (!repeats) return;
  CHECK(saving.weights_hash == undisturbed.weights_hash);
  CHECK(resumed.weights_hash == undisturbed.weights_hash);
  CHECK(resumed.train_loss == undisturbed.train_loss);
  CHECK(resumed.test_accuracy == undisturbed.test_accuracy);
  CHECK(metrics == expected);
}

// What an algorithm is tested with: every compressor, and some codecs.
inline std::vector<std::string> compressions_of(const StrategyInfo& algo) {
  if (!algo.distributed() || algo.sends_weights) return {"none"};
  std::vector<std::string> all = compressor_names();
  if (algo.name == "d-sync")
    for (const char* codec : {"terngrad", "onebit", "topk:0.05", "randomk:0.1", "powersgd:2"})
      all.emplace_back(codec);
  if (algo.name == "pipe-sgd" || algo.name == "merge") all.emplace_back("dgc:0.05");
  return all;
}

// Every algorithm with every compressor; with sanitizers, every other pair. `options_of` returns
// the options for an algorithm, a number of workers and the number of the pair.
template <class F>
void check_every_algorithm_resumes(const Task& task, F options_of) {
  Random random(20);
  int pairs = 0;
  for (const StrategyInfo& algo : all_strategies())
    for (const std::string& compress : compressions_of(algo)) {
      const int pair = pairs++;
      if (kSanitized && pair % 2 == 1) continue;
      CAPTURE(algo.name);
      CAPTURE(compress);
      // Asynchronous runs of one worker repeat, those of several do not.
      for (const int workers : algo.asynchronous()  ? std::vector{1, 2}
                               : algo.distributed() ? std::vector{2}
                                                    : std::vector{1}) {
        if (workers < algo.least_workers) continue;
        CAPTURE(workers);
        TrainOptions o = options_of(algo.name, workers, pair);
        o.compress = compress;
        if (o.device != DeviceKind::cpu && compress == "terngrad-ring") continue;  // refused
        if (algo.has_option("--pipe-k")) o.algo_options["--warmup-iterations"] = 5;
        check_resumes(task, o, random, workers == 1 || !algo.asynchronous());
      }
    }
}

}  // namespace tandem::test

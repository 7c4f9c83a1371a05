// A run that continues from a checkpoint, compared with one that was never interrupted.
#pragma once

#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "base/random.h"
#include "tests/support.h"
#include "train/checkpoint.h"
#include "train/trainer.h"

namespace tandem::test {

// The metrics without times, which differ from run to run.
inline std::vector<nlohmann::json> metrics_in(const std::filesystem::path& file) {
  std::vector<nlohmann::json> lines;
  std::istringstream text(read_bytes(file));
  for (std::string line; std::getline(text, line);) {
    nlohmann::json json = nlohmann::json::parse(line);
    json.erase("iteration_ms");
    json.erase("wall_s");
    lines.push_back(json);
  }
  return lines;
}

// Trains three times: undisturbed, with checkpoints at a random interval, and from a random one of
// them. All must give the same bits and metrics.
inline void check_resumes(const Task& task, TrainOptions o, Random& random) {
  const TemporaryFolder folder;
  o.metrics = folder / "undisturbed.jsonl";
  const Summary undisturbed = train(task, o);

  o.metrics = folder / "resumed.jsonl";
  o.checkpoint = folder / "checkpoints";
  o.checkpoint_every = 1 + static_cast<std::int64_t>(random.below(6));
  o.keep = static_cast<int>(o.iterations);
  CHECK(train(task, o).weights_hash == undisturbed.weights_hash);
  const auto saved = checkpoints_in(o.checkpoint);
  REQUIRE(!saved.empty());
  REQUIRE(std::ssize(saved) == (o.iterations - 1) / o.checkpoint_every);

  const std::int64_t from = saved[random.below(saved.size())];
  CAPTURE(from);
  o.resume = checkpoint_folder(o.checkpoint, from);
  o.checkpoint = "";
  const Summary resumed = train(task, o);
  CHECK(resumed.weights_hash == undisturbed.weights_hash);
  CHECK(resumed.train_loss == undisturbed.train_loss);
  CHECK(resumed.test_accuracy == undisturbed.test_accuracy);
  CHECK(std::ssize(resumed.iteration_ms) == o.iterations);
  CHECK(resumed.starts == std::vector<std::int64_t>{0, from});
  CHECK(metrics_in(o.metrics) == metrics_in(folder / "undisturbed.jsonl"));
}

}  // namespace tandem::test

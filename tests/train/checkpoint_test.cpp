// Checkpoints: a run that continues from one ends like a run that was never interrupted.
#include "train/checkpoint.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "base/random.h"
#include "layers/batch_norm.h"
#include "layers/linear.h"
#include "layers/sequential.h"
#include "layers/simple.h"
#include "tests/json.h"
#include "tests/support.h"
#include "tests/train/digits.h"
#include "tests/train/resuming.h"
#include "tests/train/small_mlp.h"
#include "train/file_lock.h"

using namespace tandem;
using namespace tandem::test;

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kIterations = 26;  // more than an epoch, and more than plans measure

// With running statistics and random numbers, which a checkpoint must not lose either.
std::unique_ptr<Layer> net(const Shape&, std::int64_t, std::uint64_t seed) {
  const Random random(seed, Purpose::weights);
  auto model = std::make_unique<Sequential>();
  model->add<BatchNorm2d>("norm", 1)
      .add<Flatten>("1")
      .add<Linear>("0", 784, 12, Init::he_normal, random.split(0))
      .add<Relu>("2")
      .add<Dropout>("3", 0.2)
      .add<Linear>("4", 12, 10, Init::xavier_normal, random.split(2));
  return model;
}

Task task() {
  return {.app = "test", .model = net, .data = [] { return digits(); }};
}

TrainOptions options(const std::string& algo, int workers) {
  TrainOptions o = short_run(algo, workers, kIterations);
  o.test_every = 7;
  return o;
}

TrainOptions saving(const fs::path& folder, const std::string& algo, std::int64_t every) {
  TrainOptions o = options(algo, 2);
  o.checkpoint = folder;
  o.checkpoint_every = every;
  return o;
}

std::string refusal(const TrainOptions& o) {
  return message_of<UserError>([&] { train(task(), o); });
}

}  // namespace

TEST_CASE("checkpoint: every algorithm continues to the same bits and the same metrics") {
  check_every_algorithm_resumes(
      task(), [](const std::string& algo, int workers, int) { return options(algo, workers); });
}

TEST_CASE("checkpoint: a run can be resumed again and again, and keeps the newest ones") {
  const TemporaryFolder folder;
  TrainOptions o = options("pipe-sgd", 2);
  const std::string expected = train(task(), o).weights_hash;
  o.checkpoint = folder / "checkpoints";
  o.checkpoint_every = 3;
  o.resume = kResumeAuto;
  o.csv = folder / "run.csv";
  o.timeline = true;
  CHECK(train(task(), o).weights_hash == expected);
  CHECK(checkpoints_in(o.checkpoint) == std::vector<std::int64_t>{21, 24});
  const std::string table = read_bytes(o.csv);
  const Summary again = train(task(), o);
  CHECK(again.weights_hash == expected);
  CHECK(again.starts == std::vector<std::int64_t>{0, 24});
  // Nothing but the times of the repeated iterations differs.
  CHECK(std::ranges::count(read_bytes(o.csv), '\n') == std::ranges::count(table, '\n'));
  const Summary third = train(task(), o);
  CHECK(third.starts == std::vector<std::int64_t>{0, 24});
  CHECK(third.timed() == kIterations - 8 - 2);
}

TEST_CASE("checkpoint: the measured plan is used again") {
  const TemporaryFolder folder;
  TrainOptions o = saving(folder / "checkpoints", "merge", 20);
  const Summary first = train(task(), o);
  REQUIRE(first.plan.merge);
  o.resume = kResumeAuto;
  const Summary second = train(task(), o);
  REQUIRE(second.plan.merge);
  CHECK(second.plan.merge->groups == first.plan.merge->groups);
  CHECK(second.plan.merge->names == first.plan.merge->names);
  CHECK(second.plan.predicted_s == first.plan.predicted_s);
  CHECK(second.plan.first_iteration == 22);
}

TEST_CASE("checkpoint: a damaged one is named, and an older one is used") {
  const TemporaryFolder folder;
  TrainOptions o = saving(folder / "checkpoints", "d-sync", 5);
  o.keep = 9;
  const std::string expected = train(task(), o).weights_hash;
  o.resume = kResumeAuto;
  const fs::path newest = checkpoint_folder(o.checkpoint, 25);
  const std::string whole = read_bytes(rank_file(newest, 1));
  const std::string manifest = read_bytes(newest / "manifest.json");

  const auto continues_from = [&](std::int64_t iteration) {
    const Summary summary = train(task(), o);
    CHECK(summary.weights_hash == expected);
    CHECK(summary.starts.back() == iteration);
  };
  continues_from(25);
  {
    std::string bytes = whole;
    bytes[bytes.size() / 2] ^= 1;
    std::ofstream(rank_file(newest, 1), std::ios::binary) << bytes;
    continues_from(20);  // and writes 25 again
    continues_from(25);
  }
  std::ofstream(rank_file(newest, 1), std::ios::binary) << whole.substr(0, whole.size() / 2);
  continues_from(20);
  fs::remove(rank_file(newest, 0));
  continues_from(20);
  std::ofstream(newest / "manifest.json") << manifest.substr(0, manifest.size() / 2);
  continues_from(20);
  fs::remove(newest / "manifest.json");
  continues_from(20);

  for (const std::int64_t iteration : checkpoints_in(o.checkpoint))
    std::ofstream(checkpoint_folder(o.checkpoint, iteration) / "manifest.json") << "{}";
  CHECK(refusal(o) ==
        fmt::format("--resume: none of the checkpoints in {} can be used", o.checkpoint));
}

TEST_CASE("checkpoint: a state of another iteration than the manifest's is refused") {
  const TemporaryFolder folder;
  TrainOptions o = saving(folder / "checkpoints", "d-sync", 20);
  train(task(), o);
  const fs::path saved = checkpoint_folder(o.checkpoint, 20);
  Manifest manifest = read_manifest(saved);
  for (const int rank : {0, 1}) {
    Snapshot state = read_rank_file(saved, rank, manifest.files[static_cast<std::size_t>(rank)]);
    state.items().at("iterations").bytes[0] = std::byte{7};
    manifest.files[static_cast<std::size_t>(rank)] = write_rank_file(saved, rank, state);
  }
  write_manifest(saved, manifest);
  o.resume = kResumeAuto;
  CHECK(refusal(o) == "the saved state is not of iteration 20");
}

TEST_CASE("checkpoint: a run that is resumed from an older one writes the newer ones again") {
  const TemporaryFolder folder;
  TrainOptions o = saving(folder / "checkpoints", "d-sync", 5);
  o.keep = 9;
  const std::string expected = train(task(), o).weights_hash;
  o.resume = checkpoint_folder(o.checkpoint, 10);
  o.keep = 1;
  CHECK(train(task(), o).weights_hash == expected);
  CHECK(checkpoints_in(o.checkpoint) == std::vector<std::int64_t>{25});
  CHECK(checkpoints_in(o.checkpoint, false) == std::vector<std::int64_t>{25});

  // In a folder of another run, they would be mixed up.
  const TrainOptions other = saving(folder / "others", "d-sync", 5);
  train(task(), other);
  o.resume = checkpoint_folder(o.checkpoint, 25);
  o.checkpoint = other.checkpoint;
  CHECK(refusal(o).find("others has a checkpoint of iteration 25") != std::string::npos);
}

TEST_CASE("checkpoint: another run is refused with what differs") {
  const TemporaryFolder folder;
  TrainOptions o = saving(folder / "checkpoints", "pipe-sgd", 20);
  train(task(), o);
  const std::string again = refusal(o);
  CHECK(again == fmt::format("--checkpoint: {} has a checkpoint of iteration 20; continue with "
                             "--resume auto, or choose another folder",
                             o.checkpoint));
  o.resume = o.checkpoint;
  o.checkpoint = "";
  const auto refused = [&](const std::string& was, const auto& change) {
    TrainOptions other = o;
    change(other);
    const std::string message = refusal(other);
    CAPTURE(message);
    CHECK(message.starts_with(
        fmt::format("--resume: {}/20 was saved with {}, but this run has ", o.resume, was)));
  };
  refused("--algo pipe-sgd", [](TrainOptions& x) { x.algo = "d-sync"; });
  refused("--workers 2", [](TrainOptions& x) { x.workers = 3; });
  refused("--pipe-k 2", [](TrainOptions& x) { x.algo_options["--pipe-k"] = 3; });
  refused("--compress none", [](TrainOptions& x) { x.compress = "quant8"; });
  refused("--batch 50", [](TrainOptions& x) { x.batch = 60; });
  refused("--seed 1", [](TrainOptions& x) { x.seed = 2; });
  refused("--lr 0.05", [](TrainOptions& x) { x.lr = 0.1; });
  refused("--lr-schedule constant",
          [](TrainOptions& x) { x.lr_schedule = Schedule::Kind::cosine; });
  refused("--iterations 26", [](TrainOptions& x) { x.iterations = 30; });

  Task other_data = task();
  other_data.data = [] {
    DataSplit data = digits();
    data.train = synthetic_digits(1000, 7);
    return data;
  };
  const std::string message = message_of<UserError>([&] { train(other_data, o); });
  CHECK(message.find("was saved with the fingerprint of training images") != message.npos);

  TrainOptions missing = o;
  missing.resume = folder / "nowhere";
  CHECK(refusal(missing) == fmt::format("--resume: {} has no complete checkpoint", missing.resume));

  // The speed of the network and who shares it may change, and the weights alone fit any set-up.
  o.link = "1gbe";
  o.ranks_per_node = 2;
  CHECK(train(task(), o).starts.back() == 20);
  TrainOptions weights = options("d-sync", 3);
  weights.resume_weights = o.resume;
  weights.iterations = 0;
  weights.epochs = 0;
  CHECK(train(task(), weights).test_accuracy > 0.2);
}

TEST_CASE("checkpoint: workers that add within nodes continue on the same nodes only") {
  const TemporaryFolder folder;
  TrainOptions o = options("ps-sync", 3);
  o.algo_options["--aggregate"] = 1;
  o.ranks_per_node = 2;
  const std::string expected = train(task(), o).weights_hash;
  o.checkpoint = folder / "checkpoints";
  o.checkpoint_every = 20;
  CHECK(train(task(), o).weights_hash == expected);
  o.resume = o.checkpoint;
  o.checkpoint = "";
  const Summary resumed = train(task(), o);
  CHECK(resumed.starts.back() == 20);
  CHECK(resumed.weights_hash == expected);
  o.link = "1gbe";
  CHECK(train(task(), o).weights_hash == expected);
  o.ranks_per_node = 1;
  CHECK(refusal(o) ==
        "the run was saved with its workers on other nodes (worker 1 is now on node 1); "
        "--aggregate nodes-first needs the same nodes, see --ranks-per-node");
}

TEST_CASE("checkpoint: metrics of another run are not overwritten") {
  const TemporaryFolder folder;
  TrainOptions o = saving(folder / "checkpoints", "d-sync", 20);
  o.metrics = folder / "run.jsonl";
  train(task(), o);
  o.resume = kResumeAuto;
  o.metrics = folder / "other.jsonl";
  std::ofstream(o.metrics) << std::string(100'000, 'x');
  CHECK(refusal(o) == fmt::format("--metrics: {} does not begin with what was written before the "
                                  "checkpoint; choose another file",
                                  o.metrics));
  CHECK(fs::file_size(o.metrics) == 100'000);
  // A new file gets what follows.
  o.metrics = folder / "new.jsonl";
  train(task(), o);
  CHECK(metrics_in(o.metrics).front()["iteration"] == 15);  // after the test of iteration 14
}

TEST_CASE("checkpoint: a folder that cannot be used is refused before training") {
  const TemporaryFolder folder;
  TrainOptions o = options("d-sync", 2);
  std::ofstream(folder / "file") << "text";
  o.checkpoint = folder / "file" / "checkpoints";
  CHECK(refusal(o).starts_with("--checkpoint: cannot create "));
  o.checkpoint = folder / "checkpoints";
  fs::create_directory(o.checkpoint);
  {
    const LockFile other(fs::path(o.checkpoint) / "lock");
    CHECK(refusal(o) == fmt::format("--checkpoint: another run is using {}; choose another folder",
                                    o.checkpoint));
  }
  o.checkpoint = "";
  o.resume = kResumeAuto;
  CHECK(refusal(o) == "--resume auto needs --checkpoint, which names the folder");
}

TEST_CASE(
    "checkpoint: if one cannot be written, training goes on, and the run ends with an error") {
  const TemporaryFolder folder;
  TrainOptions o = saving(folder / "checkpoints", "d-sync", 10);
  fs::create_directory(o.checkpoint);
  // The folder of the second checkpoint is a file.
  std::ofstream(fs::path(o.checkpoint) / "20") << "in the way";
  o.summary = folder / "summary.json";
  const std::string message = message_of<SystemError>([&] { train(task(), o); });
  CHECK(message.find("--checkpoint: rank 0 could not write its part of iteration 20") !=
        message.npos);
  CHECK(checkpoints_in(o.checkpoint) == std::vector<std::int64_t>{10});
  CHECK(json_of(read_bytes(o.summary))["iterations"] == kIterations);
}

TEST_CASE("checkpoint: manifests that others made are refused in one sentence") {
  CHECK(manifest_from(
            to_json({.iteration = 3, .made_for = {{"--algo", "d-sync"}}, .files = {{1, 2}}}))
            .files[0]
            .hash == 2);
  for (
      const auto& [text, message] : std::vector<std::pair<std::string, std::string>>{
          {"[]", "it lacks \"format\""},
          {R"({"format": 2})", "its format is 2; this version reads format 1"},
          {R"({"format": 1})", "it lacks \"iteration\""},
          {R"({"format": 1, "iteration": -1})",
           "\"iteration\" must be a whole number up to 1152921504606846976, not -1"},
          {R"({"format": 1, "iteration": 1, "made_for": 3})", "\"made_for\" must be a list"},
          {R"({"format": 1, "iteration": 1, "made_for": [[1]]})",
           "\"made_for\" must be a list of names and values"},
          {R"({"format": 1, "iteration": 1, "made_for": [], "files": []})", "it names no files"},
          {R"({"format": 1, "iteration": 1, "made_for": [], "files": [{"bytes": 1, "hash": "xyz"}]})",
           "\"hash\" must have 16 hexadecimal digits, not \"xyz\""}})
    CHECK(message_of<UserError>([&] { manifest_from(text); }) == message);
}

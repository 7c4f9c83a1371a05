// The whole training loop, end to end, on the synthetic digits.
#include "train/trainer.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "autograd/ops.h"
#include "data/synthetic.h"
#include "layers/models/models.h"
#include "tensor/cpu/cpu_backend.h"
#include "tests/json.h"
#include "tests/support.h"
#include "train/step_runner.h"

using namespace tandem;
using namespace tandem::test;

namespace {

Task task() {
  static const DataSplit data = [] {
    const auto train = synthetic_digits(5000, 1);
    return DataSplit{train, synthetic_digits(1000, 2), measure_normalisation(*train), "digits"};
  }();
  return {.app = "test",
          .model = [](const Shape&, std::int64_t, std::uint64_t seed) { return mnist_mlp(seed); },
          .data = [] { return data; }};
}

TrainOptions options(std::int64_t iterations) {
  TrainOptions o;
  o.iterations = iterations;
  o.threads = 2;
  o.quiet = true;
  return o;
}

}  // namespace

TEST_CASE("training: the MLP learns the synthetic digits to 95% in 300 iterations") {
  const Summary s = train(task(), options(300));
  CHECK(s.iterations == 300);
  CHECK(s.test_accuracy > 0.95);
  CHECK(s.train_loss < 0.1);
}

TEST_CASE("training: the same seed gives the same weights for any number of threads") {
  TrainOptions o = options(30);
  const std::string hash = train(task(), o).weights_hash;
  CHECK(train(task(), o).weights_hash == hash);
  for (const int threads : {1, 3}) {
    o.threads = threads;
    CHECK(train(task(), o).weights_hash == hash);
  }
  o.seed = 2;
  CHECK(train(task(), o).weights_hash != hash);
}

TEST_CASE("training: every option of the optimizer has an effect") {
  const std::string plain = train(task(), options(20)).weights_hash;
  std::vector<TrainOptions> others(7, options(20));
  others[0].lr = 0.04;
  others[1].momentum = 0.8;
  others[2].nesterov = true;
  others[3].weight_decay = 0.01;
  others[4].lr_schedule = Schedule::Kind::cosine;
  others[5].lr_warmup_iterations = 5;
  others[6].label_smoothing = 0.1;
  for (const TrainOptions& o : others) CHECK(train(task(), o).weights_hash != plain);
}

TEST_CASE("training: the step schedule counts epochs") {
  TrainOptions o = options(12);
  o.batch = 1000;  // five iterations make an epoch
  o.lr_schedule = Schedule::Kind::step;
  o.lr_step_factor = 0.5;
  const TemporaryFolder folder;
  o.metrics = folder / "metrics.jsonl";
  for (const std::int64_t every : {1, 2}) {
    o.lr_step_epochs = every;
    train(task(), o);
    std::istringstream lines(read_bytes(folder / "metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      const auto entry = json_of(line);
      if (!entry.contains("lr")) continue;
      const std::int64_t steps = (entry["iteration"].get<std::int64_t>() - 1) / (5 * every);
      CHECK(entry["lr"].get<double>() == doctest::Approx(0.05 * std::pow(0.5, steps)));
    }
  }
}

TEST_CASE("training: files are written, and a run can start from them") {
  const TemporaryFolder folder;
  TrainOptions o = options(60);
  o.save = folder / "weights.safetensors";
  o.metrics = folder / "metrics.jsonl";
  o.csv = folder / "metrics.csv";
  o.summary = folder / "summary.json";
  const Summary s = train(task(), o);

  const auto json = json_of(read_bytes(folder / "summary.json"));
  CHECK(json["iterations"] == 60);
  CHECK(json["weights_hash"] == s.weights_hash);
  CHECK(json["test_accuracy"] == s.test_accuracy);
  CHECK(json["options"]["batch"] == 100);
  CHECK(json["options"]["iterations"] == 60);
  for (const char* key : {"wall_s", "samples_per_s", "peak_memory_mb", "train_loss"})
    CHECK(json[key].get<double>() > 0);
  CHECK(json["iteration_ms"]["median"].get<double>() > 0);
  CHECK(json["iteration_ms"]["p95"] >= json["iteration_ms"]["median"]);
  double parts = 0;
  for (const auto& [name, ms] : json["breakdown_ms"].items()) parts += ms.get<double>();
  CHECK(json["iteration_ms"]["timed"] == 60 - 8);  // the first ones do not count
  const double mean = json["iteration_ms"]["mean"];
  CHECK(parts <= mean);
  CHECK(parts > 0.5 * mean);

  // 60 iterations, and the tests after 50 (an epoch) and 60 (the end).
  std::istringstream lines(read_bytes(folder / "metrics.jsonl"));
  int iterations = 0, epochs = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto entry = json_of(line);
    (entry.contains("test_accuracy") ? epochs : iterations) += 1;
  }
  CHECK(iterations == 60);
  CHECK(epochs == 2);

  // The same as a table: the rows of iterations 50 and 60 have all columns but the objective.
  std::istringstream rows(read_bytes(folder / "metrics.csv"));
  std::string row;
  std::getline(rows, row);
  CHECK(row == "iteration,epoch,loss,lr,iteration_ms,train_loss,test_accuracy,objective,wall_s");
  int number = 0;
  while (std::getline(rows, row)) {
    CHECK(row.starts_with(fmt::format("{},{},", number + 1, number / 50 + 1)));
    CHECK(std::ranges::count(row, ',') == 8);
    const bool tested = ++number == 50 || number == 60;
    CHECK(row.ends_with(",,,,") != tested);
  }
  CHECK(number == 60);
  CHECK(read_bytes(folder / "metrics.csv").find(fmt::format(",{},,", s.test_accuracy)) !=
        std::string::npos);

  TrainOptions again = options(0);
  again.epochs = 0;
  again.load = o.save;
  const Summary loaded = train(task(), again);
  CHECK(loaded.weights_hash == s.weights_hash);
  CHECK(loaded.test_accuracy == s.test_accuracy);
  again.batch = 10'000;  // more than there are training images, of which none is wanted
  CHECK(train(task(), again).test_accuracy == s.test_accuracy);
}

TEST_CASE("training: divergence ends training, also in the last update") {
  TrainOptions last = options(1);
  last.lr = 1e30;
  last.weight_decay = 1e30;
  CHECK(message_of<Diverged>([&] { train(task(), last); }).find("is no longer finite") !=
        std::string::npos);
  TrainOptions o = options(200);
  o.lr = 1e6;
  CHECK(message_of<Diverged>([&] { train(task(), o); }).starts_with("training diverged"));
}

TEST_CASE("training: divergence names a parameter and does not touch the weights' file") {
  const TemporaryFolder folder;
  write_bytes(folder / "weights", "those before");
  TrainOptions o = options(50);
  o.lr = 1e20;
  o.save = folder / "weights";
  const std::string message = message_of<Diverged>([&] { train(task(), o); });
  CAPTURE(message);
  CHECK(message.starts_with("training diverged: the gradient of 0.weight is not finite in "));
  CHECK(read_bytes(folder / "weights") == "those before");
}

// A device that runs what it records, and says what it replays.
class SaysReplays : public CpuBackend {
 public:
  explicit SaysReplays(std::vector<std::string>& log) : CpuBackend(1), log_(log) {}

  std::vector<std::unique_ptr<Recording>> record(
      const std::function<void(const Cut& cut)>& work) override {
    std::vector<std::unique_ptr<Recording>> recordings;
    const auto end = [&] {
      recordings.push_back(
          std::make_unique<Says>(fmt::format("replay {}", recordings.size()), log_));
    };
    work(end);
    end();
    return recordings;
  }

 private:
  struct Says : Recording {
    Says(std::string what, std::vector<std::string>& to) : text(std::move(what)), log(to) {}
    void replay() override { log.push_back(text); }
    std::string text;
    std::vector<std::string>& log;
  };
  std::vector<std::string>& log_;
};

TEST_CASE("step runner: a replay calls before_use before the piece that uses the parameter") {
  struct Notes : Hooks {
    Notes(bool needs, std::vector<std::string>& to) : needs_it(needs), log(to) {}
    void before_use(Parameter& p) override { log.push_back("use " + p.name); }
    bool needs_before_use() const override { return needs_it; }
    void on_grad_ready(Parameter& p) override { log.push_back("ready " + p.name); }
    bool needs_it;
    std::vector<std::string>& log;
  };
  constexpr std::size_t kCount = 40, kPerPiece = 3;  // at most 16 pieces
  for (const bool needs : {true, false}) {
    CAPTURE(needs);
    std::vector<std::string> log;
    const Device device(std::make_shared<SaysReplays>(log));
    std::vector<std::unique_ptr<Parameter>> owned;
    std::vector<ParameterSet::Named> named;
    for (std::size_t i = 0; i < kCount; ++i) {
      owned.push_back(std::make_unique<Parameter>(Shape{1}, std::vector<float>{1}));
      named.push_back({std::to_string(i), owned.back().get()});
    }
    const ParameterSet parameters(named, device);
    Notes hooks(needs, log);
    Tape tape;
    Spans spans;
    StepRunner runner(
        true,
        [&](const Batch&) {
          tape.begin(Tape::Mode::training, Random(1));
          Var sum = tape.use(*owned[0]);
          for (std::size_t i = 1; i < kCount; ++i) sum = add(tape, sum, tape.use(*owned[i]));
          return sum;
        },
        hooks, parameters, tape, spans);
    const Tensor image = Tensor::zeros({1}, Dtype::f32, device);
    const Batch batch{.images = image, .labels = image};
    for (int step = 0; step < 3; ++step) runner.run(batch);  // the third is recorded and replayed

    for (int replay = 0; replay < 2; ++replay) {
      log.clear();
      CHECK(runner.run(batch).item() == kCount);
      std::vector<std::string> expected;
      for (std::size_t i = 0; i < kCount && needs; ++i) {
        expected.push_back(fmt::format("use {}", i));
        if (i % kPerPiece == kPerPiece - 1 || i == kCount - 1)
          expected.push_back(fmt::format("replay {}", i / kPerPiece));
      }
      if (!needs) expected.emplace_back("replay 0");
      expected.emplace_back("replay 0");  // backward
      for (std::size_t i = kCount; i > 0; --i) expected.push_back(fmt::format("ready {}", i - 1));
      CHECK(log == expected);
    }
  }
}

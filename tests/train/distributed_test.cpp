// Training on several workers, end to end: what must not depend on how the work is distributed.
#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <map>
#include <set>
#include <sstream>
#include <thread>

#include "autograd/ops.h"
#include "data/loader.h"
#include "data/synthetic.h"
#include "dist/compress/compressor.h"
#include "dist/strategies.h"
#include "layers/linear.h"
#include "layers/sequential.h"
#include "layers/simple.h"
#include "tests/json.h"
#include "tests/support.h"
#include "tests/train/digits.h"
#include "tests/train/small_mlp.h"
#include "train/check_options.h"
#include "train/replica.h"
#include "train/trainer.h"
#include "train/weights.h"

using namespace tandem;
using namespace tandem::test;

namespace {

// Those whose result does not depend on which worker is faster.
std::vector<std::string> distributed_algorithms() {
  std::vector<std::string> names;
  for (const StrategyInfo& info : all_strategies())
    if (info.distributed() && !info.asynchronous()) names.push_back(info.name);
  return names;
}

std::string hash(const TrainOptions& o) { return train(small_mlp_on_digits(), o).weights_hash; }

}  // namespace

TEST_CASE("distributed: d-sync, ps-sync and pipe-sgd with K=1 give the same bits, per compressor") {
  for (const std::string& compress : compressor_names())
    for (const int workers : {1, 2, 3, 5}) {
      CAPTURE(compress);
      CAPTURE(workers);
      TrainOptions d_sync = short_run("d-sync", workers);
      d_sync.compress = compress;
      const std::string expected = hash(d_sync);

      TrainOptions ps_sync = short_run("ps-sync", workers);
      ps_sync.compress = compress;
      for (const int servers : {1, 2, 7}) {
        ps_sync.algo_options["--servers"] = servers;
        CHECK(hash(ps_sync) == expected);
      }
      TrainOptions pipe = short_run("pipe-sgd", workers);
      pipe.compress = compress;
      pipe.algo_options["--pipe-k"] = 1;
      CHECK(hash(pipe) == expected);
      pipe.algo_options["--pipe-k"] = 3;
      pipe.algo_options["--warmup-iterations"] = 1000;  // the pipeline never opens
      CHECK(hash(pipe) == expected);
    }
}

TEST_CASE("distributed: a link changes the time and nothing else, shared or not") {
  for (const std::string& algo : distributed_algorithms()) {
    TrainOptions o = short_run(algo, 3, 5);
    const std::string expected = hash(o);
    o.link = "2gbit/100us";
    CHECK(hash(o) == expected);
    o.ranks_per_node = 2;
    CHECK(hash(o) == expected);
  }
}

TEST_CASE("distributed: every step of the optimizer is the same on workers and servers") {
  TrainOptions o = short_run("d-sync", 2);
  o.nesterov = true;
  o.weight_decay = 0.01;
  o.lr_schedule = Schedule::Kind::cosine;
  const std::string expected = hash(o);
  o.algo = "ps-sync";
  o.algo_options["--servers"] = 2;
  CHECK(hash(o) == expected);
}

// Alg. 1 without threads: the update of iteration t uses the gradient of iteration t - K.
TEST_CASE("distributed: pipe-sgd equals a one-process reference of the delayed update") {
  for (const int k : {2, 3})
    for (const std::int64_t warmup : {0, 4}) {
      TrainOptions o = short_run("pipe-sgd", 1, 15);
      o.algo_options["--pipe-k"] = k;
      o.algo_options["--warmup-iterations"] = warmup;

      Replica replica(small_mlp_on_digits(), digits(), o, cpu_device());
      Loader loader(digits().train, digits().normalisation, replica.device(),
                    {.batch = o.batch, .training = true, .seed = o.seed});
      Tape tape;
      std::vector<Tensor> gradients;
      std::int64_t applied = 0;
      const auto apply_until = [&](std::int64_t last) {
        while (applied < last) {
          ++applied;
          replica.optimizer().update(applied, gradients[static_cast<std::size_t>(applied - 1)]);
        }
      };
      for (std::int64_t t = 1; t <= o.iterations; ++t) {
        apply_until(t - k);
        const Batch batch = loader.next();
        tape.begin(Tape::Mode::training);
        const Var logits = replica.model().forward(tape, Var{batch.images});
        tape.backward(softmax_cross_entropy(tape, logits, batch.labels, {.batch = o.batch}),
                      replica.parameters());
        gradients.push_back(replica.parameters().gradients().clone());
        if (t <= warmup) apply_until(t);
      }
      apply_until(o.iterations);
      CHECK(hash(o) == weights_hash(replica.parameters()));
      CHECK(hash(o) != hash(short_run("d-sync", 1, 15)));
    }
}

TEST_CASE("distributed: pipe-sgd gives the same bits however the threads interleave") {
  TrainOptions o = short_run("pipe-sgd", 4, 20);
  const std::string expected = hash(o);
  for (const char* link : {"none", "10gbit", "1gbit/300us"}) {
    o.link = link;
    CHECK(hash(o) == expected);
  }
}

namespace {

// The weights at the end of a run.
std::vector<float> weights_after(TrainOptions o) {
  const TemporaryFolder folder;
  o.save = o.load = folder / "weights";
  TrainOptions training = o;
  training.load = "";
  train(small_mlp_on_digits(), training);
  Replica replica(small_mlp_on_digits(), digits(), check_options(o), cpu_device());
  return replica.parameters().values().to_host<float>();
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    worst = std::max(worst, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  return worst;
}

}  // namespace

// The mean of one step by each worker's own gradient is the step by the mean of the gradients, with
// momentum too, where all workers have as many samples.
TEST_CASE("distributed: local-sgd that averages after every iteration agrees with d-sync") {
  TrainOptions d_sync = short_run("d-sync", 3), local = short_run("local-sgd", 3);
  for (TrainOptions* o : {&d_sync, &local}) o->batch = 48;
  const auto expected = weights_after(d_sync);
  local.algo_options["--period"] = 1;
  CHECK(largest_difference(weights_after(local), expected) < 2e-6);
  local.algo_options["--period"] = 4;
  CHECK(largest_difference(weights_after(local), expected) > 1e-4);
}

TEST_CASE("distributed: local-sgd learns and can be verified, with every compressor") {
  for (const std::string& compress : compressor_names()) {
    TrainOptions o = short_run("local-sgd", 3, 60);
    o.compress = compress;
    o.algo_options["--period"] = 5;
    o.verify_every = 7;
    const Summary s = train(small_mlp_on_digits(), o);
    CHECK(s.test_accuracy > 0.5);
    CHECK(s.predicted_s());
    // Twelve means, and seven more where the weights are compared in between. For each of them the
    // workers together send 2(p - 1) times as many bytes as a gradient has.
    const auto wire = make_compressor(compress)->bytes(s.gradient_count);
    const double sums =
        static_cast<double>(s.ranks[0].bytes_sent + s.ranks[1].bytes_sent + s.ranks[2].bytes_sent) /
        (4.0 * static_cast<double>(wire));
    CHECK(sums == doctest::Approx(12 + 7).epsilon(0.01));
  }
}

TEST_CASE("distributed: p workers agree with one, also if the batch does not divide evenly") {
  const TemporaryFolder folder;
  const auto weights = [&](const std::string& algo, int workers) {
    TrainOptions o = short_run(algo, workers);
    o.batch = 46;
    o.save = folder / "weights";
    const Summary s = train(small_mlp_on_digits(), o);
    TrainOptions load = o;
    load.load = o.save;
    Replica replica(small_mlp_on_digits(), digits(), load, cpu_device());
    return std::pair(replica.parameters().values().to_host<float>(), s.test_accuracy);
  };
  const auto [one, one_accuracy] = weights("single", 1);
  for (const int workers : {2, 3, 4, 7}) {
    const auto [many, accuracy] = weights("d-sync", workers);
    double worst = 0;
    for (std::size_t i = 0; i < one.size(); ++i)
      worst = std::max(worst, std::abs(static_cast<double>(one[i]) - static_cast<double>(many[i])));
    CHECK(worst < 2e-6);  // f32 sums in another order; the weights are below 1
    CHECK(worst > 0);
    CHECK(accuracy == doctest::Approx(one_accuracy).epsilon(0.01));
  }
}

TEST_CASE("distributed: the losses of all workers add up to the batch's loss") {
  const TemporaryFolder folder;
  const auto losses = [&](const std::string& algo, int workers) {
    TrainOptions o = short_run(algo, workers, 25);  // an epoch has 20
    o.metrics = folder / "metrics";
    train(small_mlp_on_digits(), o);
    std::vector<double> values;
    std::istringstream lines(read_bytes(folder / "metrics"));
    for (std::string line; std::getline(lines, line);)
      if (const auto json = json_of(line); json.contains("loss")) values.push_back(json["loss"]);
    return values;
  };
  const auto one = losses("single", 1), four = losses("d-sync", 4), local = losses("local-sgd", 4);
  REQUIRE(local.size() == 25);
  CHECK(local[0] == doctest::Approx(one[0]).epsilon(1e-4));
  REQUIRE(one.size() == 25);
  REQUIRE(four.size() == 25);
  for (std::size_t i = 0; i < one.size(); ++i)
    CHECK(four[i] == doctest::Approx(one[i]).epsilon(1e-4));
}

TEST_CASE("distributed: tests may come at any iteration, and change nothing") {
  const TemporaryFolder folder;
  for (const std::string& algo : distributed_algorithms()) {
    CAPTURE(algo);
    TrainOptions o = short_run(algo, 2, 25);  // an epoch has 20
    const std::string expected = hash(o);
    o.test_every = 10;
    o.metrics = folder / "metrics";
    CHECK(hash(o) == expected);
    std::vector<std::pair<int, int>> tests;  // iteration, epoch
    std::istringstream lines(read_bytes(folder / "metrics"));
    for (std::string line; std::getline(lines, line);)
      if (const auto json = json_of(line); json.contains("test_accuracy"))
        tests.emplace_back(json["iteration"], json["epoch"]);
    CHECK(tests == std::vector<std::pair<int, int>>{{10, 1}, {20, 1}, {25, 2}});
  }
}

TEST_CASE("distributed: a pipeline's communication is counted, also just before a test") {
  TrainOptions o = short_run("pipe-sgd", 2, 16);
  o.link = "20mbit";
  o.test_every = 2;
  const Summary s = train(small_mlp_on_digits(), o);
  // No link is faster than its bandwidth.
  const double bytes = static_cast<double>(s.ranks[0].bytes_sent) / 16;
  CHECK(s.mean_ms() >= 0.99 * 1e3 * bytes * 8 / 20e6);
}

TEST_CASE("distributed: the summary shows every rank, what it sent and what was predicted") {
  const TemporaryFolder folder;
  TrainOptions o = short_run("ps-sync", 3);
  o.algo_options["--servers"] = 2;
  o.compress = "trunc16";
  o.summary = folder / "summary.json";
  o.trace = folder / "trace.json";
  const Summary s = train(small_mlp_on_digits(), o);
  REQUIRE(s.ranks.size() == 5);
  CHECK(s.ranks[4].server);
  const std::int64_t count = s.gradient_count;
  CHECK(s.ranks[0].bytes_sent == 12 * 2 * count);
  CHECK(s.ranks[3].bytes_sent + s.ranks[4].bytes_sent == 12 * 3 * 4 * count);
  const auto json = json_of(read_bytes(folder / "summary.json"));
  CHECK(json["ranks"].size() == 5);
  CHECK(json["ranks"][0]["bytes_sent"] == static_cast<double>(2 * count));
  CHECK(json["iteration_ms"]["predicted"].get<double>() > 0);
  CHECK(json["slowest_worker"].get<int>() < 3);
  CHECK(json["breakdown_ms"]["compress"].get<double>() > 0);
  CHECK(json["breakdown_ms"]["sum"] == 0);  // trunc16 adds what is compressed
  for (const int rank : {3, 4}) CHECK(json["ranks"][rank]["breakdown_ms"]["compress"] > 0.0);

  // An algorithm without a model gets no prediction, least of all another one's.
  Summary own = s;
  own.options.algo = "mine";
  CHECK_FALSE(own.predicted_s());
  CHECK(to_text(own).find("  predicted      –\n") != std::string::npos);
  CHECK(json_of(to_json(own))["iteration_ms"]["predicted"].is_null());

  // One row per thread, ranks as processes, spans inside each other or one after the other.
  const auto trace = json_of(read_bytes(folder / "trace.json"));
  std::map<std::pair<int, int>, std::set<std::string>> rows;
  for (const auto& event : trace["traceEvents"])
    if (event["ph"] == "X") {
      rows[{event["pid"], event["tid"]}].insert(event["name"]);
      CHECK(event["dur"].get<double>() >= 0);
      CHECK(event["ts"].get<double>() >= 0);
    }
  CHECK(rows.size() == 3 * 2 + 2);
  CHECK(rows[{0, 0}] == std::set<std::string>{"data", "forward", "backward", "wait"});
  CHECK(rows[{0, 1}] == std::set<std::string>{"communicate", "compress"});
  CHECK(rows[{3, 1}] == std::set<std::string>{"communicate", "compress", "update"});
}

TEST_CASE(
    "distributed: divergence is reported with rank, parameter and iteration by all algorithms") {
  for (const std::string& compress : compressor_names())
    for (const std::string& algo : distributed_algorithms()) {
      TrainOptions o = short_run(algo, 3, 50);
      o.compress = compress;
      o.lr = 1e20;
      const std::string message = message_of<Diverged>([&] { train(small_mlp_on_digits(), o); });
      CAPTURE(message);
      CHECK(message.starts_with("rank "));
      CHECK(message.find(": training diverged: the gradient of 0.weight is not finite in "
                         "iteration ") != std::string::npos);
    }
}

TEST_CASE("distributed: a server waits for workers that compute longer than the stall timeout") {
  // A layer that takes three times as long.
  struct Slow : Layer {
    Var forward(Tape&, const Var& x) override {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      return x;
    }
  };
  const auto slow_mlp = [](const Shape& image, std::int64_t classes, std::uint64_t seed) {
    auto model = std::make_unique<Sequential>();
    model->add<Slow>("slow").add("net", small_mlp(image, classes, seed));
    return model;
  };
  TrainOptions o = short_run("ps-sync", 1, 1);
  o.stall_timeout = 0.1;
  Task slow = small_mlp_on_digits();
  slow.model = slow_mlp;
  CHECK(train(slow, o).iterations == 1);
}

// Training on the GPU: what must not depend on how the work is distributed, replayed or repeated,
// and what happens when memory runs out.
#include "data/synthetic.h"
#include "dist/block.h"
#include "dist/compress/compressor.h"
#include "dist/strategies.h"
#include "layers/conv2d.h"
#include "layers/linear.h"
#include "layers/models/models.h"
#include "layers/sequential.h"
#include "layers/simple.h"
#include "tests/cuda/compare.h"
#include "tests/train/digits.h"
#include "tests/train/resuming.h"
#include "tests/train/small_conv_net.h"
#include "train/trainer.h"

using namespace tandem;
using namespace tandem::test;

namespace {

std::unique_ptr<Layer> mlp(const Shape&, std::int64_t, std::uint64_t seed) {
  return mnist_mlp(seed);
}

using Model = std::unique_ptr<Layer> (*)(const Shape&, std::int64_t, std::uint64_t);

TrainOptions options(const std::string& algo, int workers, Precision precision) {
  TrainOptions o;
  o.device = DeviceKind::cuda;
  o.deterministic = true;
  o.precision = precision;
  o.algo = algo;
  o.workers = workers;
  o.batch = 50;
  o.iterations = 20;
  o.threads = 1;
  o.quiet = true;
  return o;
}

Task task(Model model) {
  return {.app = "test", .model = model, .data = [] { return digits(); }};
}
Summary run(Model model, const TrainOptions& o) { return train(task(model), o); }
std::string hash(Model model, const TrainOptions& o) { return run(model, o).weights_hash; }

// The mean of what is seen of the image, per channel.
struct Mean : Layer {
  Var forward(Tape& tape, const Var& x) override { return global_average_pool(tape, x); }
};

// So wide that no GPU has the memory for a batch.
std::unique_ptr<Layer> wide_net(const Shape&, std::int64_t, std::uint64_t seed) {
  constexpr std::int64_t kWidth = 1 << 18;
  const Random random(seed, Purpose::weights);
  auto model = std::make_unique<Sequential>();
  model->add<Conv2d>("wide", Conv2d::Options{.in = 1, .out = kWidth, .window = 1}, random.split(0))
      .add<Mean>("mean")
      .add<Linear>("last", kWidth, 10, Init::he_normal, random.split(1));
  return model;
}

}  // namespace

TEST_CASE("cuda: training: replayed steps give the bits of direct ones, and runs repeat") {
  for (const Model model : {mlp, small_conv_net})
    for (const Precision precision : kPrecisions) {
      CAPTURE(to_string(precision));
      CAPTURE(model == mlp);
      TrainOptions o = options("single", 1, precision);
      const std::string expected = hash(model, o);
      CHECK(hash(model, o) == expected);
      o.graphs = Switch::off;
      CHECK(hash(model, o) == expected);
      o.seed = 2;
      CHECK(hash(model, o) != expected);
    }
}

TEST_CASE("cuda: training: replayed steps give the bits of direct ones with other algorithms too") {
  for (const Model model : {mlp, small_conv_net})
    for (const Precision precision : {Precision::fp32, Precision::bf16})
      for (const char* algo : {"pipe-sgd", "local-sgd"})
        for (const int workers : {1, 2, 4}) {
          CAPTURE(to_string(precision));
          CAPTURE(algo);
          CAPTURE(workers);
          TrainOptions o = options(algo, workers, precision);
          o.algo_options = {{"--pipe-k", 2}, {"--period", 3}};
          o.test_every = 4;  // a test averages the statistics of batch normalisation
          const std::string expected = hash(model, o);
          CHECK(hash(model, o) == expected);
          o.graphs = Switch::off;
          CHECK(hash(model, o) == expected);
          o.link = "2gbit/100us";
          CHECK(hash(model, o) == expected);
        }
}

TEST_CASE("cuda: training: all synchronous algorithms and pipe-sgd with K=1 have the same bits") {
  for (const Model model : {mlp, small_conv_net})
    for (const Precision precision : {Precision::fp32, Precision::bf16})
      for (const std::string& compress : compressor_names()) {
        if (make_compressor(compress)->packing() == Packing::ternary) continue;  // only on hosts
        if (model == mlp && (precision != Precision::fp32 || compress != "none")) continue;
        CAPTURE(to_string(precision));
        CAPTURE(compress);
        TrainOptions o = options("d-sync", 4, precision);
        o.compress = compress;
        const std::string expected = hash(model, o);
        for (const StrategyInfo& algo : all_strategies()) {
          const bool pipe = algo.has_option("--pipe-k");
          if (algo.family != Family::synchronous && !pipe) continue;
          CAPTURE(algo.name);
          o.algo = algo.name;
          o.algo_options = {};
          if (pipe) o.algo_options["--pipe-k"] = 1;
          if (algo.has_option("--servers")) o.algo_options["--servers"] = 2;
          if (algo.has_option("--slice")) o.algo_options["--slice"] = kBlock;
          const StrategyOption* choice = algo.option(algo.has_option("--via") ? "--via" : "--push");
          for (std::int64_t value = 0; value <= (choice ? choice->most : 0); ++value)
            for (const Switch graphs : {Switch::on, Switch::off}) {
              if (choice) o.algo_options[choice->name] = value;
              o.graphs = graphs;
              CAPTURE(value);
              CAPTURE(to_string(graphs));
              CHECK(hash(model, o) == expected);
            }
        }
      }
}

TEST_CASE("cuda: training: every algorithm continues from a checkpoint to the same bits") {
  check_every_algorithm_resumes(
      task(small_conv_net), [](const std::string& algo, int workers, int pair) {
        TrainOptions o = options(algo, workers, pair % 2 == 1 ? Precision::bf16 : Precision::fp32);
        o.iterations = 26;  // more than an epoch, and more than plans measure
        o.test_every = 7;
        o.graphs = Switch::on;
        return o;
      });
}

TEST_CASE("cuda: training: a single worker equals d-sync with one worker") {
  for (const Precision precision : {Precision::fp32, Precision::bf16})
    CHECK(hash(small_conv_net, options("d-sync", 1, precision)) ==
          hash(small_conv_net, options("single", 1, precision)));
}

TEST_CASE("cuda: training: the GPU learns what the CPU learns") {
  TrainOptions on_cpu = options("single", 1, Precision::fp32);
  on_cpu.device = DeviceKind::cpu;
  const Summary cpu = run(mlp, on_cpu);
  for (const Precision precision : kPrecisions)
    for (const bool deterministic : {false, true}) {
      CAPTURE(to_string(precision));
      TrainOptions o = options("single", 1, precision);
      o.deterministic = deterministic;
      const Summary gpu = run(mlp, o);
      // Over 20 steps: fp32 differs by rounding, the others by what they round to.
      const double near = precision == Precision::fp32 ? 1e-3 : 3e-2;
      CHECK(gpu.train_loss == doctest::Approx(cpu.train_loss).epsilon(near));
    }
}

TEST_CASE("cuda: training: divergence is reported with the parameter and the iteration") {
  TrainOptions o = options("single", 1, Precision::fp32);
  o.lr = 1e20;
  const std::string message = message_of<SystemError>([&] { run(mlp, o); });
  CAPTURE(message);
  CHECK(message.starts_with(
      "training diverged: the gradient of 0.weight is not finite in iteration "));
}

TEST_CASE("cuda: training: an allocation larger than the GPU is refused") {
  const Device device = cuda_device({});
  CHECK_THROWS_AS(Tensor::empty({1'000'000'000'000'000}, Dtype::u8, device), OutOfMemory);
  // And the device goes on.
  const Tensor x = Tensor::zeros({10}, Dtype::f32, device);
  CHECK(floats(x) == std::vector<float>(10));
}

TEST_CASE("cuda: training: a batch that does not fit into memory is explained") {
  TrainOptions o = options("single", 1, Precision::fp32);
  o.batch = 1000;
  const std::string message = message_of<SystemError>([&] { run(wide_net, o); });
  CAPTURE(message);
  CHECK(message.starts_with("out of memory on cuda: "));
  CHECK(message.find("wide") != std::string::npos);
  CHECK(message.find("lower --batch") != std::string::npos);
}

// CIFAR-Convex: measures what the Pipe-SGD paper proves about convex losses. All layers except the
// last are fixed, so their outputs are computed once. Only the last layer is trained, by the same
// strategies as every other net.
#include <doctest/doctest.h>

#include <cmath>

#include "data/synthetic.h"
#include "layers/linear.h"
#include "layers/models/models.h"
#include "tests/support.h"
#include "train/trainer.h"

using namespace tandem;
using namespace tandem::test;

namespace {

constexpr std::int64_t kSamples = 2000, kClasses = 10, kFeatures = CifarConvex::kFeatures;

// The fixed layers' outputs for all samples.
std::vector<float> make_features(const InMemoryDataset& images) {
  const Device device = cpu_device(2);
  CifarConvex net(images.image_shape(), kClasses, 1);
  const ParameterSet parameters(net.parameters(), device);
  const auto pixels = images.pixels();
  std::vector<float> x(pixels.size());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(pixels[i]) / 128 - 1;
  const Shape s = images.image_shape();
  Tape tape;
  tape.begin(Tape::Mode::inference);
  auto features = net.features(tape, Var{Tensor::from(x, {kSamples, s[0], s[1], s[2]}, device)})
                      .value.to_host<float>();
  // Mean 0 and deviation 1: the same problem for the last layer, but one that is not so badly
  // scaled that plain SGD sees nothing of the optimum.
  for (std::size_t f = 0; f < kFeatures; ++f) {
    double sum = 0, squares = 0;
    for (std::size_t i = f; i < features.size(); i += kFeatures) {
      sum += static_cast<double>(features[i]);
      squares += static_cast<double>(features[i]) * static_cast<double>(features[i]);
    }
    const double mean = sum / kSamples, deviation = std::sqrt(squares / kSamples - mean * mean);
    for (std::size_t i = f; i < features.size(); i += kFeatures)
      features[i] = deviation > 0
                        ? static_cast<float>((static_cast<double>(features[i]) - mean) / deviation)
                        : 0;
  }
  return features;
}

class LastLayer : public Layer {
 public:
  explicit LastLayer(std::uint64_t seed)
      : linear_(kFeatures, kClasses, Init::xavier_normal, Random(seed, Purpose::weights)) {}

  Var forward(Tape& tape, const Var& x) override { return linear_.forward(tape, flatten(tape, x)); }
  void collect(const std::string& prefix, std::vector<ParameterSet::Named>& into) override {
    linear_.collect(prefix, into);
  }

 private:
  Linear linear_;
};

struct Problem {
  Problem() {
    const auto images = synthetic_objects(kSamples, kClasses, 1);
    std::vector<std::int32_t> labels;
    std::vector<std::uint8_t> pixels(static_cast<std::size_t>(images->image_shape().count()));
    for (std::int64_t i = 0; i < kSamples; ++i) labels.push_back(images->read(i, pixels, nullptr));
    const auto set = std::make_shared<FeatureDataset>(Shape{1, 1, kFeatures}, kClasses,
                                                      make_features(*images), labels);
    data = {.train = set, .test = set, .description = "features"};
  }

  Task task() const {
    return {.app = "test",
            .model = [](const Shape&, std::int64_t,
                        std::uint64_t seed) { return std::make_unique<LastLayer>(seed); },
            .data = [this] { return data; }};
  }
  // The loss over all samples, exactly.
  double loss(const std::string& weights) const {
    TrainOptions o;
    o.load = weights;
    o.batch = kSamples;
    o.iterations = 1;
    o.threads = 1;
    o.quiet = true;
    return train(task(), o).train_loss;
  }
  double loss_after(TrainOptions o) const {
    const TemporaryFolder folder;
    o.save = folder / "last.safetensors";
    o.threads = 1;
    o.quiet = true;
    train(task(), o);
    return loss(o.save);
  }
  // By a long run over all samples at once.
  double least_loss() const {
    TrainOptions o;
    o.batch = kSamples;
    o.iterations = 2000;
    o.lr = 0.5;
    o.momentum = 0.98;
    o.nesterov = true;
    return loss_after(o);
  }

  DataSplit data;
};

// Four workers for T iterations of plain SGD, at a rate that falls with √(KT) as the proof asks.
TrainOptions plain_sgd(const std::string& algo, double k, std::int64_t iterations) {
  TrainOptions o;
  o.algo = algo;
  o.workers = 4;
  o.iterations = iterations;
  o.momentum = 0;
  o.lr = 4 / std::sqrt(k * static_cast<double>(iterations));
  return o;
}

}  // namespace

TEST_CASE("convex: D-Sync and Pipe-SGD reach the same loss, as fast as the paper proves" *
          doctest::skip(kSanitized)) {
  const Problem problem;
  const double least = problem.least_loss();
  double d_sync = 0, pipe_sgd = 0;
  for (const auto& [algo, k, reached] :
       {std::tuple{"d-sync", 1.0, &d_sync}, std::tuple{"pipe-sgd", 2.0, &pipe_sgd}}) {
    const std::string name = algo;
    CAPTURE(name);
    double before = 0;
    for (const std::int64_t iterations : {50, 200, 800}) {
      *reached = problem.loss_after(plain_sgd(algo, k, iterations));
      const double gap = *reached - least;
      CAPTURE(iterations);
      CHECK(gap > 0);
      // O(√(K/T)): four times the iterations, half the gap or less.
      if (before > 0) CHECK(gap <= before / 2);
      before = gap;
    }
  }
  CHECK(std::abs(pipe_sgd / d_sync - 1) < 0.01);
}

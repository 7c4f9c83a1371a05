// Convolutional nets learn, end to end, on objects and digits drawn by program.
#include <doctest/doctest.h>

#include "data/synthetic_digits.h"
#include "data/synthetic_objects.h"
#include "layers/models/cifar_cnn.h"
#include "layers/models/resnet.h"
#include "train/trainer.h"

using namespace tandem;

namespace {

DataSplit split(const std::shared_ptr<const InMemoryDataset>& train,
                const std::shared_ptr<const InMemoryDataset>& test) {
  return {train, test, measure_normalisation(*train), "drawn"};
}

Summary run(const Task& task, TrainOptions o) {
  o.threads = 2 / o.workers;
  o.quiet = true;
  return train(task, o);
}

}  // namespace

// Ten classes: what knows nothing is right in 10%.

TEST_CASE("training: the CIFAR net learns objects to 25% in 150 iterations") {
  TrainOptions o;
  o.batch = 50;
  o.iterations = 150;
  o.lr = 0.02;
  const auto data = [] {
    return split(synthetic_objects(4000, 10, 1), synthetic_objects(500, 10, 2));
  };
  const Summary s = run({.app = "test", .model = cifar_cnn, .data = data}, o);
  CHECK_MESSAGE(s.test_accuracy > 0.25, s.test_accuracy);
  CHECK(s.train_loss < 2.1);
}

TEST_CASE("training: a residual net learns digits to 80%, by two workers with delayed gradients") {
  TrainOptions o;
  o.batch = 32;
  o.iterations = 120;
  o.lr = 0.02;
  o.workers = 2;
  o.algo = "pipe-sgd";
  const auto model = [](const Shape& image, std::int64_t classes, std::uint64_t seed) {
    return cifar_resnet(20, image, classes, seed);
  };
  const auto data = [] { return split(synthetic_digits(3000, 1), synthetic_digits(300, 2)); };
  const Summary s = run({.app = "test", .model = model, .data = data}, o);

  CHECK_MESSAGE(s.test_accuracy > 0.8, s.test_accuracy);
}

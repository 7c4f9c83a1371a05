// Convolutional nets learn, end to end, on generated digits.
#include <doctest/doctest.h>

#include "data/synthetic.h"
#include "layers/models/models.h"
#include "tests/support.h"
#include "train/trainer.h"

using namespace tandem;
using namespace tandem::test;

namespace {

// Digits of 14 pixels each way instead of 28, so that it takes little time.
std::shared_ptr<const InMemoryDataset> small_digits(std::int64_t count, std::uint64_t seed) {
  const auto digits = synthetic_digits(count, seed);
  std::vector<std::uint8_t> whole(28 * 28), pixels, labels;
  for (std::int64_t i = 0; i < count; ++i) {
    labels.push_back(static_cast<std::uint8_t>(digits->read(i, whole, nullptr)));
    const auto at = [&](std::size_t y, std::size_t x) { return int{whole[y * 28 + x]}; };
    for (std::size_t y = 0; y < 28; y += 2)
      for (std::size_t x = 0; x < 28; x += 2)
        pixels.push_back(static_cast<std::uint8_t>(
            (at(y, x) + at(y, x + 1) + at(y + 1, x) + at(y + 1, x + 1)) / 4));
  }
  return std::make_shared<InMemoryDataset>(Shape{14, 14, 1}, 10, std::move(pixels),
                                           std::move(labels));
}

DataSplit data() {
  static const DataSplit split = [] {
    const auto train = small_digits(3000, 1);
    return DataSplit{train, small_digits(300, 2), measure_normalisation(*train), "digits"};
  }();
  return split;
}

Summary run(const Task& task, TrainOptions o) {
  o.batch = 32;
  o.threads = o.workers == 2 ? 1 : 2;
  o.quiet = true;
  return train(task, o);
}

}  // namespace

// Ten classes: what knows nothing is right in 10%.

TEST_CASE("training: the CIFAR net learns digits to 80% in 90 iterations" *
          doctest::skip(kSanitized)) {
  TrainOptions o;
  o.iterations = 90;
  o.lr = 0.02;
  const Summary s = run({.app = "test", .model = cifar_cnn, .data = data}, o);
  CHECK_MESSAGE(s.test_accuracy > 0.8, s.test_accuracy);
}

// Too slow with sanitizers, which see the same code in other tests.
TEST_CASE("training: a residual net learns digits to 80%, by two workers with delayed gradients" *
          doctest::skip(kSanitized)) {
  TrainOptions o;
  o.iterations = 120;
  o.lr = 0.02;
  o.workers = 2;
  o.algo = "pipe-sgd";
  const auto model = [](const Shape& image, std::int64_t classes, std::uint64_t seed) {
    return cifar_resnet(20, image, classes, seed);
  };
  const Summary s = run({.app = "test", .model = model, .data = data}, o);
  CHECK_MESSAGE(s.test_accuracy > 0.8, s.test_accuracy);
}

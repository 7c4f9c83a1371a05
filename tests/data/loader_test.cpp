#include "data/loader.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <set>
#include <thread>

#include "tests/support.h"

using namespace tandem;
using namespace tandem::test;

namespace {

const Normalisation kPlain{{0.0F}, {1.0F}};

// Sample i is the single pixel i with the label i % 10.
std::shared_ptr<const Dataset> numbers(std::int64_t count) {
  std::vector<std::uint8_t> pixels, labels;
  for (std::int64_t i = 0; i < count; ++i) {
    pixels.push_back(static_cast<std::uint8_t>(i));
    labels.push_back(static_cast<std::uint8_t>(i % 10));
  }
  return std::make_shared<InMemoryDataset>(Shape{1, 1, 1}, 10, pixels, labels);
}

std::vector<int> samples_of(const Batch& batch) {
  std::vector<int> samples;
  const auto labels = batch.labels.to_host<std::int32_t>();
  for (const float value : batch.images.to_host<float>()) {
    samples.push_back(static_cast<int>(value * 255 + 0.5F));
    CHECK(labels[samples.size() - 1] == samples.back() % 10);
  }
  return samples;
}

}  // namespace

TEST_CASE("loader: training epochs are shuffled differently and drop the short last batch") {
  Loader loader(numbers(103), kPlain, cpu_device(), {.batch = 10, .training = true, .seed = 1});
  CHECK(loader.batches_per_epoch() == 10);
  std::vector<std::vector<int>> epochs;
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::vector<int> all;
    for (int b = 0; b < 10; ++b)
      for (const int sample : samples_of(loader.next())) all.push_back(sample);
    CHECK(std::set<int>(all.begin(), all.end()).size() == 100);
    CHECK(!std::ranges::is_sorted(all));
    epochs.push_back(all);
  }
  CHECK(epochs[0] != epochs[1]);
  CHECK(epochs[1] != epochs[2]);
}

TEST_CASE("loader: testing keeps the order and the short last batch") {
  Loader loader(numbers(25), kPlain, cpu_device(), {.batch = 10});
  for (int epoch = 0; epoch < 2; ++epoch) {
    std::vector<int> all;
    for (std::int64_t b = 0; b < loader.batches_per_epoch(); ++b)
      for (const int sample : samples_of(loader.next())) all.push_back(sample);
    CHECK(all.size() == 25);
    CHECK(std::ranges::is_sorted(all));
  }
}

TEST_CASE("loader: any number of threads gives the same batches in the same order") {
  const auto take = [](int threads, bool training) {
    Loader loader(numbers(103), kPlain, cpu_device(),
                  {.batch = 10, .training = training, .seed = 7, .threads = threads});
    std::vector<std::vector<int>> batches;
    for (int b = 0; b < 35; ++b) batches.push_back(samples_of(loader.next()));
    return batches;
  };
  for (const bool training : {false, true}) {
    const auto one = take(1, training);
    for (const int threads : {2, 3, 16}) CHECK(take(threads, training) == one);
  }
}

TEST_CASE("loader: a batch may be too short for all workers") {
  for (const int threads : {1, 3}) {
    Loader loader(numbers(11), kPlain, cpu_device(),
                  {.batch = 10, .workers = 4, .rank = 3, .threads = threads});
    for (int epoch = 0; epoch < 3; ++epoch) {
      CHECK(loader.next().labels.count() == 2);
      CHECK(loader.next().labels.count() == 0);
    }
  }
}

TEST_CASE("loader: only a few batches are prepared ahead") {
  struct Counting : Dataset {
    std::int64_t size() const override { return 1000; }
    Shape image_shape() const override { return {1, 1, 1}; }
    std::int64_t classes() const override { return 10; }
    std::int32_t read(std::int64_t, std::span<std::uint8_t> pixels, Random*) const override {
      pixels[0] = 0;
      ++reads;
      return 0;
    }
    mutable std::atomic<int> reads = 0;
  };
  const auto set = std::make_shared<Counting>();
  Loader loader(set, kPlain, cpu_device(), {.batch = 5, .threads = 4});
  for (int taken = 1; taken <= 10; ++taken) {
    loader.next();
    CHECK(set->reads <= 5 * (taken + 4));
  }
}

TEST_CASE("loader: workers together see what one worker sees") {
  const auto take = [](std::int64_t workers, std::int64_t rank) {
    Loader loader(numbers(100), kPlain, cpu_device(),
                  {.batch = 10, .training = true, .seed = 5, .workers = workers, .rank = rank});
    std::vector<std::vector<int>> batches;
    for (int b = 0; b < 15; ++b) batches.push_back(samples_of(loader.next()));
    return batches;
  };
  const auto one = take(1, 0);
  std::vector<std::vector<int>> together(15);
  for (std::int64_t rank = 0; rank < 3; ++rank) {
    const auto mine = take(3, rank);
    for (std::size_t b = 0; b < 15; ++b)
      together[b].insert(together[b].end(), mine[b].begin(), mine[b].end());
  }
  CHECK(together == one);
}

TEST_CASE("loader: pixels are normalised per channel") {
  const auto set = std::make_shared<InMemoryDataset>(
      Shape{1, 1, 2}, 1, std::vector<std::uint8_t>{51, 102}, std::vector<std::uint8_t>{0});
  Loader loader(set, {{0.1F, 0.2F}, {0.5F, 0.25F}}, cpu_device(), {.batch = 1});
  const auto values = loader.next().images.to_host<float>();
  CHECK(values[0] == doctest::Approx((0.2 - 0.1) / 0.5));
  CHECK(values[1] == doctest::Approx((0.4 - 0.2) / 0.25));
}

TEST_CASE("loader: augmentation depends on epoch and sample, not on the workers") {
  const Augment augment = [](std::span<std::uint8_t> pixels, const Shape& shape, Random& random) {
    CHECK(shape == Shape{1, 1, 1});
    pixels[0] = static_cast<std::uint8_t>(random.below(256));
  };
  const auto take = [&](std::int64_t workers, std::int64_t rank, bool training) {
    Loader loader(numbers(20), kPlain, cpu_device(),
                  {.batch = 20,
                   .training = training,
                   .seed = 5,
                   .workers = workers,
                   .rank = rank,
                   .augment = augment});
    std::vector<float> values;
    for (int epoch = 0; epoch < 2; ++epoch)
      for (const float v : loader.next().images.to_host<float>()) values.push_back(v);
    return values;
  };
  const auto one = take(1, 0, true), first = take(2, 0, true);
  CHECK(std::vector(one.begin(), one.begin() + 10) ==
        std::vector(first.begin(), first.begin() + 10));
  CHECK(std::vector(one.begin() + 20, one.begin() + 30) ==
        std::vector(first.begin() + 10, first.end()));
  CHECK(take(1, 0, false)[7] == doctest::Approx(7.0 / 255));  // testing is never augmented
}

TEST_CASE("loader: a failure while reading reaches the caller, after the good batches") {
  struct Broken : Dataset {
    std::int64_t size() const override { return 10; }
    Shape image_shape() const override { return {1, 1, 1}; }
    std::int64_t classes() const override { return 10; }
    std::int32_t read(std::int64_t index, std::span<std::uint8_t>, Random*) const override {
      if (index == 2) throw UserError("image {} is broken", index);
      return 0;
    }
  };
  Loader loader(std::make_shared<Broken>(), kPlain, cpu_device(), {.batch = 1});
  loader.next();
  loader.next();
  CHECK(message_of<UserError>([&] { loader.next(); }) == "image 2 is broken");
  CHECK(message_of<UserError>([&] { loader.next(); }) == "image 2 is broken");
}

TEST_CASE("loader: of several failures, that of the first sample is reported") {
  // Odd samples fail; the earlier, the later.
  struct Slow : Dataset {
    std::int64_t size() const override { return 40; }
    Shape image_shape() const override { return {1, 1, 1}; }
    std::int64_t classes() const override { return 10; }
    std::int32_t read(std::int64_t index, std::span<std::uint8_t> pixels, Random*) const override {
      pixels[0] = static_cast<std::uint8_t>(index);
      if (index < 21 || index % 2 == 0) return static_cast<std::int32_t>(index % 10);
      std::this_thread::sleep_for(std::chrono::milliseconds(30 - index));
      throw UserError("image {} is broken", index);
    }
  };
  for (const int threads : {1, 2, 5}) {
    Loader loader(std::make_shared<Slow>(), kPlain, cpu_device(),
                  {.batch = 10, .threads = threads});
    CHECK(samples_of(loader.next()).front() == 0);
    CHECK(samples_of(loader.next()).front() == 10);
    for (int again = 0; again < 2; ++again)
      CHECK(message_of<UserError>([&] { loader.next(); }) == "image 21 is broken");
  }
}

TEST_CASE("loader: may be destroyed at any time") {
  for (int taken = 0; taken < 8; ++taken) {
    Loader loader(numbers(100), kPlain, cpu_device(), {.batch = 7, .training = true, .threads = 3});
    for (int b = 0; b < taken; ++b) loader.next();
  }
}

TEST_CASE("loader: impossible options are refused") {
  CHECK_THROWS_AS(Loader(numbers(5), kPlain, cpu_device(), {.batch = 6, .training = true}),
                  std::logic_error);
  Loader(numbers(5), kPlain, cpu_device(), {.batch = 6});  // fine for testing
}

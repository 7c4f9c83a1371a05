#include "train/fixed_features.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>

#include "data/synthetic.h"
#include "layers/models/models.h"
#include "tests/support.h"
#include "train/trainer.h"

using namespace tandem;
using namespace tandem::test;

namespace {

const Shape kImage{32, 32, 3};

DataSplit images() {
  const auto train = synthetic_objects(60, 10, 1), test = synthetic_objects(20, 10, 2);
  return {train, test, measure_normalisation(*train), "objects"};
}

// How often the layers were run, and what came of it.
struct Made {
  int computed = 0;
  DataSplit data;

  explicit Made(std::uint64_t seed = 1) {
    CifarConvex net(kImage, 10, seed);
    const ParameterSet parameters(net.parameters(), cpu_device(2));
    const auto forward = [&](Tape& tape, const Var& x) { return net.features(tape, x); };
    data = with_fixed_features(images(), {parameters, forward, CifarConvex::kFeatures},
                               [&](std::int64_t count) {
                                 CHECK(count == 80);
                                 ++computed;
                               });
  }
  std::vector<float> sample(std::int64_t i) const {
    std::vector<float> values(CifarConvex::kFeatures);
    const std::span bytes(reinterpret_cast<std::uint8_t*>(values.data()),
                          values.size() * sizeof(float));
    data.train->read(i, bytes, nullptr);
    return values;
  }
};

class CacheFolder {
 public:
  CacheFolder() { ::setenv("TANDEM_CACHE", folder_.path().c_str(), 1); }
  ~CacheFolder() { ::setenv("TANDEM_CACHE", "", 1); }
  std::vector<std::filesystem::path> files() const {
    const std::filesystem::directory_iterator all(folder_.path());
    return {begin(all), end(all)};
  }

 private:
  TemporaryFolder folder_;
};

double loss_after(const DataSplit& data, const std::string& algo) {
  TrainOptions o;
  o.algo = algo;
  o.workers = algo == "single" ? 1 : 3;
  o.batch = 20;
  o.iterations = 7;
  o.threads = 1;
  o.quiet = true;
  const auto model = [](const Shape&, std::int64_t classes, std::uint64_t seed) {
    return std::make_unique<CifarConvex>(kImage, classes, seed);
  };
  return train({.app = "test", .model = model, .data = [&] { return data; }}, o).train_loss;
}

}  // namespace

TEST_CASE("fixed features: training on them equals training on the images") {
  const DataSplit features = Made().data;
  CHECK(features.train->size() == 60);
  CHECK(features.train->image_shape() == Shape{1, 1, 64});
  for (const char* algo : {"single", "d-sync", "pipe-sgd"}) {
    const std::string name = algo;
    CAPTURE(name);
    // To rounding: products of other sizes may add up in another order.
    CHECK(loss_after(features, algo) == doctest::Approx(loss_after(images(), algo)).epsilon(1e-5));
  }
}

TEST_CASE("fixed features: are computed once for the same layers and data") {
  const CacheFolder cache;
  const Made first;
  CHECK(first.computed == 1);
  const Made second;
  CHECK(second.computed == 0);
  CHECK(second.sample(7) == first.sample(7));
  CHECK(Made(2).computed == 1);  // other layers
  CHECK(cache.files().size() == 2);
}

TEST_CASE("fixed features: a damaged cache file is rewritten") {
  const CacheFolder cache;
  const Made first;
  REQUIRE(cache.files().size() == 1);
  const std::filesystem::path file = cache.files().front();
  SUBCASE("a flipped bit") {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(1000);
    const char byte = static_cast<char>(stream.get() ^ 1);
    stream.seekp(1000);
    stream.put(byte);
  }
  SUBCASE("cut off") { std::filesystem::resize_file(file, 1000); }
  const Made again;
  CHECK(again.computed == 1);
  CHECK(again.sample(7) == first.sample(7));
  CHECK(Made().computed == 0);
}

TEST_CASE("fixed features: the cache keeps the newest nets") {
  const CacheFolder cache;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) Made{seed};
  CHECK(cache.files().size() == 8);
  CHECK(Made(10).computed == 0);
}

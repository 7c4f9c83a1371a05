// Codecs in whole runs. (choice_test.cpp has --compress auto.)
#include <doctest/doctest.h>

#include "dist/strategies.h"
#include "tests/train/small_mlp.h"
#include "train/replica.h"
#include "train/trainer.h"

using namespace tandem;
using namespace tandem::test;

namespace {

double loss_with(const std::string& compress, std::int64_t iterations, bool error_feedback = true) {
  TrainOptions o = short_run("d-sync", 3, iterations);
  o.compress = compress;
  o.no_error_feedback = !error_feedback;
  return train(small_mlp_on_digits(), o).train_loss;
}

}  // namespace

TEST_CASE("codecs: training with each of them learns") {
  for (const char* compress :
       {"terngrad", "qsgd:4", "onebit", "topk:0.05", "randomk:0.5", "dgc:0.05", "powersgd:2"}) {
    CAPTURE(compress);
    CHECK(loss_with(compress, 150) < 1);  // guessing among ten digits has a loss of 2.3
  }
}

// Two steps with a gradient of zero: the second decay is added to what the first has left.
TEST_CASE("codecs: with any of them, the weight decay has momentum") {
  const DataSplit data = digits();
  for (const char* compress : {"none", "topk:0.1", "dgc:0.1"}) {
    CAPTURE(compress);
    TrainOptions o = short_run("d-sync", 2);
    o.compress = compress;
    o.lr = 0.1;
    o.momentum = 0.9;
    o.weight_decay = 0.5;
    Replica replica(small_mlp_on_digits(), data, o, cpu_device());
    const float before = replica.parameters().values().to_host<float>().front();
    REQUIRE(before != 0);
    for (std::int64_t t = 1; t <= 2; ++t) replica.optimizer().update(t);
    const float after = replica.parameters().values().to_host<float>().front();
    const double once = 1 - 0.1 * 0.5;
    CHECK(after / before == doctest::Approx(once - 0.1 * (0.9 * 0.5 + 0.5 * once)));
  }
}

// In shorter runs, late gradients cost as much as lost ones. PowerSGD loses little of a net as
// small as this.
TEST_CASE("codecs: what is left out is needed") {
  CHECK(2 * loss_with("topk:0.01", 300) < loss_with("topk:0.01", 300, false));
}

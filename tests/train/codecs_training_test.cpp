// Codecs in whole runs. (choice_test.cpp has --compress auto.)
#include <doctest/doctest.h>

#include "dist/strategies.h"
#include "tests/train/small_mlp.h"
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

// In shorter runs, late gradients cost as much as lost ones. PowerSGD loses little of a net as
// small as this.
TEST_CASE("codecs: what is left out is needed") {
  CHECK(2 * loss_with("topk:0.01", 300) < loss_with("topk:0.01", 300, false));
}

#include "train/choice.h"

#include <doctest/doctest.h>

#include "base/error.h"
#include "tests/train/small_mlp.h"
#include "train/trainer.h"

using namespace tandem;
using namespace tandem::test;

namespace {

Summary run(const std::string& algo, const std::string& compress, const char* link = "none") {
  TrainOptions o = short_run(algo, 3);
  o.compress = compress;
  o.link = link;
  return train(small_mlp_on_digits(), o);
}

}  // namespace

TEST_CASE("auto: it trains with one of those that are allowed, and the trial changes nothing") {
  for (const auto& [algo, compress] : {std::pair{"auto", "none"},
                                       {"auto:wfbp,pipe-sgd,p3", "auto"},
                                       {"merge", "auto:topk:0.1,dgc:0.1"}}) {
    CAPTURE(algo);
    const Summary chosen = run(algo, compress);
    TrainOptions o;
    o.algo = algo;
    o.compress = compress;
    const Choices choices = choices_of(o);
    CHECK(std::ranges::count(choices.algos, chosen.options.algo) == 1);
    CHECK(std::ranges::count(choices.compressions, chosen.options.compress) == 1);
    const Summary named = run(chosen.options.algo, chosen.options.compress);
    CHECK(named.weights_hash == chosen.weights_hash);
    CHECK(named.ranks.front().bytes_sent == chosen.ranks.front().bytes_sent);
  }
}

// Links so slow that even a busy machine computes faster than it sends, so pipe-sgd gains from
// sending less.
TEST_CASE("auto: it sends less over a slow link, and hides what it can") {
  CHECK(run("pipe-sgd", "auto:none,topk:0.01", "2mbit/10us").options.compress == "topk:0.01");
  const Summary s = run("auto:pipe-sgd,d-sync", "auto:none,quant8", "2mbit/10us");
  CHECK(s.options.algo == "pipe-sgd");
  CHECK(s.options.compress == "quant8");
}

TEST_CASE("auto: without iterations there is no trial, and all algorithms must fit the net") {
  TrainOptions o = short_run("auto", 2, 0);
  o.epochs = 0;
  CHECK(train(small_mlp_on_digits(), o).iterations == 0);
  o = short_run("auto:d-sync,buckets", 2);
  o.algo_options["--bucket-mb"] = 25;
  CHECK_THROWS_AS(train(small_mlp_on_digits(), o), UserError);
}

TEST_CASE("auto: what cannot be used together is left out") {
  const Summary s = run("auto:p3,d-sync", "auto:none,onebit", "1mbit/10us");
  CHECK(s.options.algo == "d-sync");
  CHECK(s.options.compress == "onebit");
}

// train() as a library: what it refuses, and what it fills in itself.
#include "train/check_options.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "dist/strategies.h"
#include "tests/support.h"
#include "tests/train/digits.h"
#include "train/choice.h"
#include "train/option_table.h"

using namespace tandem;
using namespace tandem::test;

namespace {

// What train() says to the default options after `change`, before it opens the data.
template <class Change>
std::string refusal(const Change& change) {
  TrainOptions o;
  change(o);
  Task never = mlp_on_digits();
  never.data = []() -> DataSplit { throw std::logic_error("the data were opened"); };
  return message_of<UserError>([&] { train(never, o); });
}

// The same with two workers.
template <class F>
std::string refusal_with(const char* algo, const char* compress, F&& change) {
  return refusal([&](TrainOptions& o) {
    o.algo = algo;
    o.workers = 2;
    o.compress = compress;
    change(o);
  });
}
void nothing(TrainOptions&) {}

}  // namespace

TEST_CASE("train(): default options work") {
  TrainOptions o;
  o.quiet = true;
  o.epochs = 1;  // ten would only take longer
  const Summary s = train(mlp_on_digits(), o);
  CHECK(s.iterations == 10);
  CHECK(s.options.algo == "single");
  CHECK(s.options.workers == 1);
  CHECK(s.options.threads > 0);

  o.workers = 2;
  const Summary two = train(mlp_on_digits(), o);
  CHECK(two.options.algo == "d-sync");
  CHECK(two.ranks.size() == 2);
}

TEST_CASE("train(): impossible numbers of workers are refused") {
  CHECK(refusal([](TrainOptions& o) {
          o.algo = "single";
          o.workers = 4;
        }) == "--workers 4 needs a distributed algorithm; --algo single has one worker");
  CHECK(refusal([](TrainOptions& o) {
          o.workers = 4;
          o.batch = 3;
        }) == "--batch 3 has less than one sample for each of 4 workers");
  CHECK(refusal([](TrainOptions& o) { o.workers = -1; }) ==
        "--workers: must be a whole number from 1 to 1024, not -1");
}

TEST_CASE("train(): values out of range are refused with the option's name") {
  const auto names = [](const char* option, const auto& change) {
    CAPTURE(option);
    const std::string message = refusal(change);
    CAPTURE(message);
    CHECK(message.starts_with(std::string(option) + ": must be "));
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  names("--lr", [](TrainOptions& o) { o.lr = -0.1; });
  names("--lr", [&](TrainOptions& o) { o.lr = nan; });
  names("--lr", [](TrainOptions& o) { o.lr = HUGE_VAL; });
  names("--momentum", [](TrainOptions& o) { o.momentum = 1; });
  names("--momentum", [&](TrainOptions& o) { o.momentum = nan; });
  names("--weight-decay", [](TrainOptions& o) { o.weight_decay = -1; });
  names("--label-smoothing", [](TrainOptions& o) { o.label_smoothing = 1; });
  names("--lr-step-factor", [](TrainOptions& o) { o.lr_step_factor = 0; });
  names("--stall-timeout", [](TrainOptions& o) { o.stall_timeout = 0; });
  names("--batch", [](TrainOptions& o) { o.batch = 0; });
  names("--epochs", [](TrainOptions& o) { o.epochs = -1; });
  names("--iterations", [](TrainOptions& o) { o.iterations = -1; });
  names("--test-every", [](TrainOptions& o) { o.test_every = -1; });
  names("--verify-every", [](TrainOptions& o) { o.verify_every = -2; });
  names("--pipe-k", [](TrainOptions& o) { o.algo_options["--pipe-k"] = 0; });
  names("--servers", [](TrainOptions& o) { o.algo_options["--servers"] = 0; });
  names("--threads", [](TrainOptions& o) { o.threads = -1; });
  names("--algo", [](TrainOptions& o) { o.algo = "magic"; });
  names("--compress", [](TrainOptions& o) { o.compress = "zip"; });
  names("--ranks-per-node", [](TrainOptions& o) { o.ranks_per_node = 1025; });
  names("--link", [](TrainOptions& o) { o.link = "fast"; });
  names("--device", [](TrainOptions& o) { o.device = static_cast<DeviceKind>(2); });
  names("--precision", [](TrainOptions& o) { o.precision = static_cast<Precision>(-1); });
  names("--graphs", [](TrainOptions& o) { o.graphs = static_cast<Switch>(2); });
  names("--lr-schedule", [](TrainOptions& o) { o.lr_schedule = static_cast<Schedule::Kind>(3); });
}

TEST_CASE("train(): contradictory options are refused") {
  CHECK(refusal([](TrainOptions& o) { o.precision = Precision::bf16; }) ==
        "--precision bf16 needs --device cuda");
  CHECK(refusal([](TrainOptions& o) {
          o.nesterov = true;
          o.momentum = 0;
        }) == "--nesterov needs a --momentum above 0");
  CHECK(refusal([](TrainOptions& o) { o.algo_options["--pipek"] = 2; }) ==
        "--pipek is not an option of any algorithm");
  for (const char* algo : {"gosgd", "ad-psgd"}) {
    CAPTURE(algo);
    CHECK(refusal([&](TrainOptions& o) { o.algo = algo; }) ==
          fmt::format("--algo {} needs at least 2 workers, not 1", algo));
    CHECK(refusal([&](TrainOptions& o) {
            o.algo = algo;
            o.workers = 2;
            o.compress = "quant8";
          }) == fmt::format("--compress quant8 is for gradients; --algo {} sends weights", algo));
  }
  CHECK(refusal_with("ps-sync", "onebit", nothing) ==
        "--compress onebit does not work with --algo ps-sync: its servers add only values that are "
        "plain, trunc16 or quant8");
  CHECK(refusal_with("p3", "topk:0.1", nothing) ==
        "--compress topk:0.1 does not work with --algo p3: only --via ring can add encoded "
        "gradients");
  CHECK(refusal_with("local-sgd", "dgc", nothing) ==
        "--compress dgc does not work with --algo local-sgd: it averages weights, and codecs are "
        "for gradients");
  CHECK(refusal_with("wfbp", "dgc:0.1:5", nothing) ==
        "--compress dgc:0.1:5 does not work with --algo wfbp: CLIP needs the norm of the whole "
        "gradient, which is sent in parts");
  CHECK(refusal_with("easgd", "topk:0.1", nothing) ==
        "--compress topk:0.1 is for gradients; --algo easgd sends weights");
  CHECK(refusal_with("d-sync", "quant8", [](TrainOptions& o) { o.no_error_feedback = true; }) ==
        "--no-error-feedback has no effect with --compress quant8");
  CHECK(refusal_with("d-sync", "qsgd:4", [](TrainOptions& o) { o.no_error_feedback = true; }) ==
        "--no-error-feedback has no effect with --compress qsgd:4");
  CHECK(refusal_with("d-sync", "topk:2", nothing) ==
        "--compress: RATIO of topk:RATIO must be a number above 0 and up to 1, not 2");
  CHECK(refusal([](TrainOptions& o) {
          o.algo = "ps-sync";
          o.algo_options = {{"--aggregate", 1}, {"--push", 1}};
        }) == "--aggregate nodes-first does not work with --push during-backward");
  CHECK(refusal([](TrainOptions& o) { o.algo_options["--gossip-p"] = 0; }) ==
        "--gossip-p: must be a number from 0.000001 to 1, not 0");
  CHECK(refusal([](TrainOptions& o) { o.algo_options["--topology"] = 3; }) ==
        "--topology: must be ring or exponential or complete, not 3");
  CHECK(refusal([](TrainOptions& o) { o.save = o.trace = "no-such-file"; }) ==
        "--save and --trace would write to the same file no-such-file");
}

TEST_CASE("train(): a slow rank must be a worker and have a speed") {
  const auto with = [](const char* slow_rank) {
    return refusal([&](TrainOptions& o) {
      o.workers = 2;
      o.slow_rank = slow_rank;
    });
  };
  for (const char* wrong : {"1", "1=", "=0.5", "1=0", "1=1.5", "1=nan", "-1=0.5", "1=0.5x"})
    CHECK(with(wrong) ==
          fmt::format("--slow-rank: must be RANK=SPEED, such as 3=0.5, with a speed from 0.001 to "
                      "1, not {}",
                      wrong));
  CHECK(with("2=0.5") == "--slow-rank 2=0.5: there is no such worker among 2");
}

TEST_CASE("train(): what auto cannot choose from is refused") {
  CHECK(refusal_with("asp", "auto", nothing) ==
        "--compress auto needs algorithms that sum gradients without servers, such as d-sync, not "
        "asp");
  CHECK(refusal_with("auto:d-sync,ps-sync", "none", nothing) ==
        "--algo auto needs algorithms that sum gradients without servers, such as d-sync, not "
        "ps-sync");
  CHECK(refusal_with("d-sync", "auto:none,", nothing)
            .starts_with("--compress: must be one of none, "));
  CHECK(refusal_with("auto:d-sync,magic", "none", nothing).ends_with(", not auto:d-sync,magic"));
  CHECK(refusal_with("auto:d-sync,", "none", nothing).ends_with(", not auto:d-sync,"));
  CHECK(refusal_with("auto:", "none", nothing).ends_with(", not auto:"));
  CHECK(refusal_with("d-sync", "auto", [](TrainOptions& o) { o.checkpoint = "folder"; }) ==
        "--compress auto cannot be used with --checkpoint: it may choose differently next time; "
        "name what it has chosen");
  CHECK(refusal_with("auto", "none", [](TrainOptions& o) { o.resume = "folder"; }) ==
        "--algo auto cannot be used with --resume: it may choose differently next time; name what "
        "it has chosen");
  const auto forget = [](TrainOptions& o) { o.no_error_feedback = true; };
  CHECK(refusal_with("auto", "auto", forget) ==
        "--no-error-feedback cannot be used with --compress auto");
  CHECK(refusal_with("auto", "quant8", forget) ==
        "--no-error-feedback has no effect with --compress quant8");
  CHECK(refusal_with("auto", "none", [](TrainOptions& o) { o.workers = 1; }) ==
        "--algo auto needs at least 2 workers, not 1");
  // Every algorithm needs a compression, and the other way round.
  CHECK(
      refusal_with("auto:p3,merge", "auto:topk:0.1,qsgd:4", nothing) ==
      "--compress qsgd:4 does not work with --algo p3: only --via ring can add encoded gradients");
  CHECK(refusal_with("auto:p3,ps-wfbp", "auto:none,topk:0.1", nothing)
            .starts_with("--compress topk:0.1 does not work with --algo ps-wfbp: "));
  CHECK(refusal_with("d-sync", "auto:none,dgc:0.1:5", nothing) ==
        "--compress auto cannot predict --compress dgc:0.1:5: parts of the gradient cannot be "
        "encoded");
}

TEST_CASE("train(): auto without a list leaves out what does not fit") {
  TrainOptions o;
  o.workers = 2;
  o.algo = "auto";
  o.compress = "topk:0.1";
  o.no_error_feedback = true;
  const TrainOptions checked = check_options(o);
  CHECK(checked.no_error_feedback);
  CHECK(choices_of(checked).algos == std::vector<std::string>{"d-sync", "merge"});
  o.compress = "none";
  CHECK(choices_of(o).algos == std::vector<std::string>{"d-sync", "merge", "p3"});
}

TEST_CASE("train(): auto with a list of one is that one") {
  TrainOptions o;
  o.workers = 2;
  o.algo = "auto:merge";
  o.compress = "auto:quant8";
  CHECK(check_options(o).algo == "merge");
  CHECK(check_options(o).compress == "quant8");
  o.algo.clear();
  o.compress = "auto";
  CHECK(check_options(o).algo == default_strategy(2).name);
  CHECK(check_options(o).compress == "auto");
}

TEST_CASE("train(): a bucket or slice that is larger than the gradient is refused") {
  const auto refused = [](const char* algo, const StrategyOptions& options) {
    TrainOptions o;
    o.algo = algo;
    o.algo_options = options;
    o.workers = 2;
    o.threads = 1;
    o.iterations = 1;
    o.quiet = true;
    return message_of<UserError>([&] { train(mlp_on_digits(), o); });
  };
  const std::string end = " is larger than the whole gradient of 648048 elements (2.59 MB)";
  CHECK(refused("buckets", {{"--bucket-mb", 3}}) == "--bucket-mb 3" + end);
  CHECK(refused("p3", {{"--slice", 648'049}}) == "--slice 648049" + end);
  CHECK(refused("buckets", {{"--bucket-mb", 2}}).empty());
  CHECK(refused("p3", {{"--slice", 648'048}}).empty());
  CHECK(refused("merge", {{"--slice", 648'049}}).empty());  // train() ignores what has no effect
  CHECK(refused("buckets", {}).empty());  // the default is larger, and means a single bucket
}

TEST_CASE("check_options: checking the result again changes nothing") {
  TrainOptions o;
  o.workers = 3;
  o.algo = "ps-sync";
  const TrainOptions once = check_options(o), twice = check_options(once);
  for (const OptionRow& row : option_table()) CHECK(row.text(once) == row.text(twice));
  CHECK(once.algo == "ps-sync");
  CHECK(once.workers == 3);
}

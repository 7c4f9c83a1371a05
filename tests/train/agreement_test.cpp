// Workers as threads whose weights differ, because a test injects a fault.
#include "train/agreement.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>

#include "layers/batch_norm.h"
#include "layers/linear.h"
#include "layers/sequential.h"
#include "layers/simple.h"
#include "tests/support.h"
#include "tests/train/digits.h"
#include "tests/train/small_mlp.h"
#include "train/option_table.h"
#include "train/trainer.h"

using namespace tandem;
using namespace tandem::test;

namespace {

// Ranks are threads that are named after them.
int rank_here() {
  char name[16];
  ::pthread_getname_np(::pthread_self(), name, sizeof name);
  return std::stoi(std::string(name).substr(std::string("rank ").size()));
}

// One weight of one rank changes by itself.
struct Fault {
  int rank;
  std::string parameter;
  int iteration;  // in whose forward it happens; 0: from the beginning
};

class Faulty : public Layer {
 public:
  Faulty(std::unique_ptr<Layer> net, const Fault& fault) : net_(std::move(net)), fault_(fault) {}

  Var forward(Tape& tape, const Var& x) override {
    if (tape.training() && ++iteration_ == fault_.iteration && rank_here() == fault_.rank) {
      const auto all = net_->parameters();
      const auto found = std::ranges::find(all, fault_.parameter, &ParameterSet::Named::name);
      REQUIRE(found != all.end());
      found->parameter->value.data<float>()[3] += 1e-6F;
    }
    return net_->forward(tape, x);
  }
  void collect(const std::string& prefix, std::vector<ParameterSet::Named>& into) override {
    net_->collect(prefix, into);
  }

 private:
  std::unique_ptr<Layer> net_;
  Fault fault_;
  int iteration_ = 0;
};

// With a layer that is not trained, and statistics.
Task task(const Fault& fault) {
  const auto model = [fault](const Shape&, std::int64_t, std::uint64_t seed) {
    if (fault.iteration == 0 && rank_here() == fault.rank) ++seed;
    const Random random(seed, Purpose::weights);
    auto net = std::make_unique<Sequential>();
    net->add<BatchNorm2d>("norm", 1)
        .add<Flatten>("flatten")
        .add<Linear>("0", Linear::Options{.in = 784, .out = 20, .role = Role::fixed},
                     random.split(0))
        .add<Relu>("1")
        .add<Linear>("2", 20, 10, Init::xavier_normal, random.split(2));
    return std::make_unique<Faulty>(std::move(net), fault);
  };
  return {.app = "test", .model = model, .data = [] { return digits(); }};
}

TrainOptions options(const std::string& algo) {
  TrainOptions o = short_run(algo, 3);
  o.test_every = 6;
  return o;
}

std::string failure(const Fault& fault, const TrainOptions& o) {
  return message_of<SystemError>([&] { train(task(fault), o); });
}

std::string differs(int rank, int iteration, const std::string& parameter) {
  return fmt::format(
      "rank 0: the weights of rank {} differ from those of rank 0 after iteration {}, first in {}; "
      "a machine or a library computes wrongly",
      rank, iteration, parameter);
}

}  // namespace

TEST_CASE("agreement: a corrupted weight is found at the next test") {
  CHECK(failure({1, "2.bias", 4}, options("d-sync")) == differs(1, 6, "2.bias"));
  CHECK(failure({2, "2.weight", 8}, options("d-sync")) == differs(2, 12, "2.weight"));
  CHECK(failure({2, "2.bias", 4}, options("pipe-sgd")) == differs(2, 6, "2.bias"));
  // A server gives all workers the same trained weights, so what it has no hand in must suffice.
  CHECK(failure({1, "0.weight", 4}, options("ps-sync")) == differs(1, 6, "0.weight"));
}

TEST_CASE("agreement: --verify-every decides when weights are compared") {
  TrainOptions o = options("d-sync");
  o.verify_every = 5;
  CHECK(failure({1, "2.bias", 4}, o) == differs(1, 5, "2.bias"));
  CHECK(failure({1, "2.bias", 6}, o) == differs(1, 10, "2.bias"));  // not at the test in between
  CHECK(failure({1, "2.bias", 11}, o) == differs(1, 12, "2.bias"));
  o.verify_every = 0;
  CHECK(failure({1, "2.bias", 4}, o).empty());
}

TEST_CASE("agreement: comparing changes nothing, and statistics may differ between tests") {
  const Fault none{0, "", -1};
  for (const std::string algo : {"d-sync", "ps-sync", "pipe-sgd", "local-sgd"}) {
    TrainOptions o = options(algo);
    o.verify_every = 0;
    const std::string expected = train(task(none), o).weights_hash;
    for (const std::int64_t every : {kAtEveryTest, std::int64_t{1}}) {
      o.verify_every = every;
      CHECK(train(task(none), o).weights_hash == expected);
    }
  }
}

TEST_CASE("agreement: workers and servers with different initial weights are refused") {
  TrainOptions o = options("ps-sync");
  for (const int rank : {2, 3})  // a worker, the server
    CHECK(message_of<UserError>([&] {
            train(task({rank, "", 0}), o);
          }) == fmt::format("the weights of rank {} differ from those of rank 0 before training, "
                            "first in 0.weight; all ranks need the same initial weights (--load)",
                            rank));
}

TEST_CASE("agreement: all options that may not differ are compared, the application's own too") {
  TrainOptions o;
  o.own["depth"].value = std::int64_t{18};
  o.own["loader_threads"] = {std::int64_t{2}, true};
  const auto names = [&] {
    std::vector<std::string> all;
    for (const Trait& trait : traits_of("test", o)) all.push_back(trait.name);
    return all;
  }();
  const auto compared = [&](const std::string& name) {
    return std::ranges::find(names, name) != names.end();
  };
  for (const char* name :
       {"the program", "--algo", "--workers", "--servers", "--lr", "--seed", "--compress", "--link",
        "--ranks-per-node", "--batch", "--iterations", "--depth"})
    CHECK(compared(name));
  for (const char* name :
       {"--threads", "--data", "--load", "--save", "--quiet", "--loader-threads"})
    CHECK(!compared(name));
}

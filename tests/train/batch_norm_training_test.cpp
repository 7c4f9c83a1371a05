// Training a net with batch norm on several workers.
#include <doctest/doctest.h>

#include "tests/support.h"
#include "tests/train/digits.h"
#include "tests/train/small_conv_net.h"
#include "tests/train/small_mlp.h"
#include "train/safetensors.h"
#include "train/trainer.h"

using namespace tandem;
using namespace tandem::test;

namespace {

Task conv_task() {
  return {.app = "test", .model = small_conv_net, .data = [] { return digits(); }};
}

}  // namespace

TEST_CASE("distributed: a net with batch norm has the same bits with every synchronous algorithm") {
  for (const int workers : {1, 2, 3}) {
    CAPTURE(workers);
    const Summary d_sync = train(conv_task(), short_run("d-sync", workers, 25));  // an epoch has 20
    TrainOptions ps_sync = short_run("ps-sync", workers, 25);
    ps_sync.algo_options["--servers"] = 2;
    TrainOptions pipe = short_run("pipe-sgd", workers, 25);
    pipe.algo_options["--pipe-k"] = 1;
    for (const TrainOptions& o : {ps_sync, pipe}) {
      const Summary s = train(conv_task(), o);
      CHECK(s.weights_hash == d_sync.weights_hash);
      CHECK(s.test_accuracy == d_sync.test_accuracy);
    }
    if (workers == 1)
      CHECK(train(conv_task(), short_run("single", 1, 25)).weights_hash == d_sync.weights_hash);
  }
}

TEST_CASE("distributed: running statistics are tested and saved as the mean over the workers") {
  const TemporaryFolder folder;
  TrainOptions o = short_run("d-sync", 3, 7);
  o.save = folder / "weights";
  const Summary trained = train(conv_task(), o);

  // The file tests alike, whatever the number of workers, and all of them keep its bits.
  for (const int workers : {1, 2, 3, 5}) {
    TrainOptions test = short_run(workers > 1 ? "d-sync" : "single", workers, 0);
    test.epochs = 0;
    test.load = o.save;
    const Summary tested = train(conv_task(), test);
    CHECK(tested.weights_hash == trained.weights_hash);
    CHECK(tested.test_accuracy == trained.test_accuracy);
  }

  // One iteration moves the running mean by a tenth of the mean over the workers' means, which for
  // parts of one size is the mean of the whole batch.
  const auto running_mean = [&](const std::string& algo, int workers) {
    TrainOptions one = short_run(algo, workers, 1);
    one.batch = 48;
    one.save = folder / "one";
    train(conv_task(), one);
    return read_safetensors(one.save).at("1.running_mean").values;
  };
  const auto alone = running_mean("single", 1), three = running_mean("d-sync", 3);
  for (std::size_t i = 0; i < alone.size(); ++i) {
    CHECK(alone[i] != 0);
    CHECK(three[i] == doctest::Approx(alone[i]).epsilon(1e-4));
  }
}

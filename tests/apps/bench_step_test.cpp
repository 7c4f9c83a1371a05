// bench_step as a user starts it.
#include <doctest/doctest.h>

#include "tests/json.h"
#include "tests/support.h"

using namespace tandem::test;

TEST_CASE("bench_step: a warm training step allocates nothing") {
  const ProgramResult r = run_program(
      "bench_step",
      {"--model", "mnist_mlp", "--batch", "20", "--threads", "2", "--iterations", "30", "--json"});
  REQUIRE(r.status == 0);
  const auto json = json_of(r.out);
  CHECK(json["allocations_per_step"] == 0);
  CHECK(json["min_ms"] <= json["median_ms"]);
  CHECK(json["median_ms"] <= json["p95_ms"]);
  CHECK(json["peak_memory_mb"].get<double>() > 0);
  CHECK(run_program("bench_step", {"--model", "nothing"}).status == 2);

  // A convolutional net, with its own batch where none is given.
  const ProgramResult conv = run_program(
      "bench_step", {"--model", "cifar_cnn", "--iterations", "1", "--warmup", "1", "--json"});
  REQUIRE(conv.status == 0);
  CHECK(json_of(conv.out)["batch"] == 100);
}

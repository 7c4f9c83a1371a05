#include "train/step_runner.h"

#include <doctest/doctest.h>

#include "tests/support.h"

using namespace tandem;
using namespace tandem::test;

TEST_CASE("step runner: steps with hooks that need before_use are not recorded") {
  struct Waits : Hooks {
    bool needs_before_use() const override { return true; }
  } hooks;
  Parameter p({1}, {1});
  const ParameterSet parameters({{"p", &p}}, cpu_device());
  Tape tape;
  Spans spans;
  const auto make = [&](bool record) {
    StepRunner(
        record, [](const Batch&) { return Var{}; }, hooks, parameters, tape, spans);
  };
  CHECK_NOTHROW(make(false));
  CHECK(message_of<UserError>([&] { make(true); }) ==
        "this algorithm waits for each layer's weights, which a recorded step cannot do; use "
        "--graphs "
        "off");
}

// The operation and the net that docs/writing-a-model.md builds.
#include <doctest/doctest.h>

#include "examples/lenet/lenet.h"
#include "tests/support.h"

using namespace tandem;
using namespace tandem::test;

TEST_CASE("lenet: the gradient of scaled_tanh") {
  check_gradients({{4, 7}}, [](Tape& t, const auto& x) { return lenet::scaled_tanh(t, x[0]); });
  // A value that is used twice: the second contribution is added to the first.
  check_gradients({{4, 7}}, [](Tape& t, const auto& x) {
    return add(t, lenet::scaled_tanh(t, x[0]), lenet::scaled_tanh(t, x[0]));
  });
}

TEST_CASE("lenet: scaled_tanh maps 1 to 1, keeps the sign, and stays below its bound") {
  Tape tape;
  tape.begin(Tape::Mode::inference);
  const Tensor x = Tensor::from(std::vector<float>{0, 1, -1, 100}, {4}, cpu_device());
  const auto y = lenet::scaled_tanh(tape, Var{x}).value.to_host<float>();
  CHECK(y[0] == 0);
  CHECK(y[1] == doctest::Approx(1).epsilon(1e-4));
  CHECK(y[2] == -y[1]);
  CHECK(y[3] == doctest::Approx(1.7159));
}

TEST_CASE("lenet: every image of a batch becomes a row of logits") {
  const auto net = lenet::lenet5({28, 28, 1}, 10, 1);
  const ParameterSet parameters(net->parameters(), cpu_device());
  CHECK(parameters.count() == 61706);
  Tape tape;
  tape.begin(Tape::Mode::inference);
  const Var images{Tensor::zeros({3, 28, 28, 1}, Dtype::f32, parameters.device())};
  CHECK(net->forward(tape, images).value.shape() == Shape{3, 10});
}

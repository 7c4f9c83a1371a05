#include <doctest/doctest.h>

#include <cmath>

#include "layers/init.h"
#include "layers/linear.h"
#include "layers/models/models.h"
#include "layers/sequential.h"
#include "layers/simple.h"
#include "tests/support.h"

using namespace tandem;
using namespace tandem::test;

namespace {

double variance_of(const std::vector<float>& values) {
  double sum = 0;
  for (const float v : values) sum += static_cast<double>(v) * static_cast<double>(v);
  return sum / static_cast<double>(values.size());
}

}  // namespace

TEST_CASE("init: variances of He, Xavier and LeCun, uniform and normal, also for filters") {
  const Shape matrix{300, 200};      // fan in 200, fan out 300
  const Shape filter{64, 3, 3, 32};  // fan in 288, fan out 576
  for (const bool uniform : {false, true}) {
    const Init he = uniform ? Init::he_uniform : Init::he_normal;
    const Init xavier = uniform ? Init::xavier_uniform : Init::xavier_normal;
    CHECK(variance_of(initial_values(he, matrix, Random(1))) ==
          doctest::Approx(2.0 / 200).epsilon(0.03));
    CHECK(variance_of(initial_values(xavier, matrix, Random(2))) ==
          doctest::Approx(2.0 / 500).epsilon(0.03));
    CHECK(variance_of(initial_values(he, filter, Random(3))) ==
          doctest::Approx(2.0 / 288).epsilon(0.04));
    CHECK(variance_of(initial_values(xavier, filter, Random(4))) ==
          doctest::Approx(2.0 / 864).epsilon(0.04));
  }
  CHECK(variance_of(initial_values(Init::he_normal_fan_out, filter, Random(5))) ==
        doctest::Approx(2.0 / 576).epsilon(0.04));
  CHECK(variance_of(initial_values(Init::lecun_uniform, filter, Random(6))) ==
        doctest::Approx(1.0 / 288).epsilon(0.04));
  CHECK(variance_of(initial_values(Init::zeros, matrix, Random(1))) == 0);
}

TEST_CASE("init: the same numbers on every platform") {
  const auto values = initial_values(Init::he_normal, {2, 4}, Random(1));
  CHECK(values[0] == 0x1.5295dcp-1F);
  CHECK(values[7] == 0x1.123694p-1F);
  CHECK(initial_values(Init::xavier_uniform, {2, 4}, Random(1))[0] == 0x1.6c7a3ep-1F);
}

TEST_CASE("layers: the MLP has PyTorch's names, order and shapes") {
  const auto model = mnist_mlp(1);
  const ParameterSet set(model->parameters(), cpu_device());
  CHECK(set.count() == 648'010);
  const std::vector<std::pair<std::string, Shape>> expected = {
      {"0.weight", {500, 784}}, {"0.bias", {500}},       {"2.weight", {500, 500}},
      {"2.bias", {500}},        {"4.weight", {10, 500}}, {"4.bias", {10}}};
  REQUIRE(set.all().size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK(set.all()[i]->name == expected[i].first);
    CHECK(set.all()[i]->shape == expected[i].second);
  }
  Tape tape;
  tape.begin(Tape::Mode::inference);
  const Var y = model->forward(tape, Var{Tensor::zeros({3, 28, 28, 1}, Dtype::f32, set.device())});
  CHECK(y.value.shape() == Shape{3, 10});
}

TEST_CASE("layers: the seed determines the weights") {
  const auto weights = [](std::uint64_t seed) {
    const auto model = mnist_mlp(seed);
    const ParameterSet set(model->parameters(), cpu_device());
    return set.values().to_host<float>();
  };
  CHECK(weights(1) == weights(1));
  CHECK(weights(1) != weights(2));
}

TEST_CASE("layers: dropout is the identity outside training and differs by step and layer") {
  const Device device = cpu_device();
  Sequential net;
  net.add<Dropout>("0", 0.5).add<Dropout>("1", 0.5);
  const Var x{Tensor::from(std::vector<float>(1000, 1.0F), {1000}, device)};
  Tape tape;
  const auto run = [&](Tape::Mode mode, std::uint64_t step) {
    tape.begin(mode, Random(1).split(step));
    return net.forward(tape, x).value.to_host<float>();
  };
  CHECK(run(Tape::Mode::inference, 1) == x.value.to_host<float>());
  const auto one = run(Tape::Mode::training, 1);
  CHECK(run(Tape::Mode::training, 1) == one);
  CHECK(run(Tape::Mode::training, 2) != one);
  // Two masks of one half each leave a quarter; the same mask twice would leave a half.
  CHECK(std::abs(std::count(one.begin(), one.end(), 4.0F) - 250) < 60);
  CHECK_THROWS_AS((dropout(tape, x, 1.0)), std::logic_error);
}

TEST_CASE("layers: an input of the wrong width is refused with both shapes") {
  const Device device = cpu_device();
  Linear layer(4, 2, Init::he_normal, Random(1));
  const ParameterSet set(layer.parameters(), device);
  Tape tape;
  tape.begin(Tape::Mode::inference);
  const Var x{Tensor::zeros({3, 5}, Dtype::f32, device)};
  CHECK(message_of<std::logic_error>([&] { layer.forward(tape, x); }) ==
        "a linear layer with weight [2, 4] cannot take input [3, 5]");
}

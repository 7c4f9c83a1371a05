// Exchanges weights with PyTorch. PyTorch made the files: data/make_torch_net.py.
#include <doctest/doctest.h>

#include <cmath>

#include "layers/batch_norm.h"
#include "layers/conv2d.h"
#include "layers/linear.h"
#include "layers/models/residual_block.h"
#include "layers/sequential.h"
#include "layers/simple.h"
#include "tests/support.h"
#include "train/safetensors.h"
#include "train/weights.h"

using namespace tandem;
using namespace tandem::test;

namespace {

const std::filesystem::path kData = std::filesystem::path(__FILE__).parent_path() / "data";

std::unique_ptr<Layer> torch_net(Role role = Role::trained) {
  const Random random(1);
  auto net = std::make_unique<Sequential>();
  net->add<Conv2d>("0",
                   Conv2d::Options{.in = 3, .out = 8, .window = 3, .convolution = {.padding = 1}},
                   random)
      .add<BatchNorm2d>("1", 8)
      .add<Relu>("2")
      .add<MaxPool>("3", Pool{.window = 3, .stride = 2, .padding = 1})
      .add<Conv2d>("4",
                   Conv2d::Options{.in = 8,
                                   .out = 12,
                                   .window = 3,
                                   .convolution = {.padding = 1, .groups = 2},
                                   .bias = true,
                                   .role = role},
                   random)
      .add<Relu>("5")
      .add<ResidualBlock>(
          "6", ResidualBlock::Options{.in = 12, .width = 16, .stride = 1, .bottleneck = false},
          random)
      .add<ResidualBlock>(
          "7", ResidualBlock::Options{.in = 16, .width = 4, .stride = 2, .bottleneck = true},
          random)
      .add<Flatten>("8")
      .add<Linear>("9", Linear::Options{.in = 3 * 2 * 16, .out = 5, .image = {3, 2, 16}}, random);
  return net;
}

}  // namespace

TEST_CASE("torch: its state dict gives the same logits here") {
  const auto net = torch_net();
  ParameterSet set(net->parameters(), cpu_device());
  load_weights(kData / "torch_net.safetensors", set);

  const auto io = read_safetensors(kData / "torch_net_io.safetensors");
  const NamedArray& images = io.at("images");  // [n, c, h, w]
  const std::int64_t n = images.shape[0], c = images.shape[1], h = images.shape[2],
                     w = images.shape[3];
  std::vector<float> pixels;  // [n, h, w, c]
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t y = 0; y < h; ++y)
      for (std::int64_t x = 0; x < w; ++x)
        for (std::int64_t k = 0; k < c; ++k)
          pixels.push_back(images.values[static_cast<std::size_t>(((i * c + k) * h + y) * w + x)]);

  Tape tape;
  tape.begin(Tape::Mode::inference);
  const Var y = net->forward(tape, Var{Tensor::from(pixels, {n, h, w, c}, set.device())});
  REQUIRE(y.value.shape() == io.at("logits").shape);
  const std::vector<float> logits = y.value.to_host<float>();
  // Sums of at most 144 products of numbers around 1, in f32, in another order.
  for (std::size_t i = 0; i < logits.size(); ++i)
    CHECK(std::abs(logits[i] - io.at("logits").values[i]) < 1e-5F);
}

TEST_CASE("torch: a net loaded from its file is saved with the same tensors") {
  const TemporaryFolder folder;
  const auto net = torch_net();
  ParameterSet set(net->parameters(), cpu_device());
  load_weights(kData / "torch_net.safetensors", set);
  save_weights(folder / "ours", set);
  const auto theirs = read_safetensors(kData / "torch_net.safetensors");
  const auto ours = read_safetensors(folder / "ours");
  REQUIRE(ours.size() == theirs.size());
  CHECK(!ours.contains("1.num_batches_tracked"));  // PyTorch does without it
  for (const auto& each : theirs) {
    const std::string& name = each.first;
    const NamedArray& array = each.second;
    CAPTURE(name);
    REQUIRE(ours.contains(name));
    CHECK(ours.at(name).shape == array.shape);
    CHECK(ours.at(name).values == array.values);
  }
  CHECK(ours.at("0.weight").shape == Shape{8, 3, 3, 3});
  CHECK(ours.at("4.weight").shape == Shape{12, 4, 3, 3});
  CHECK(ours.at("7.downsample.0.weight").shape == Shape{16, 16, 1, 1});
}

TEST_CASE("weights: only the fixed ones can be loaded from a file that has more") {
  const auto net = torch_net(Role::fixed);
  ParameterSet set(net->parameters(), cpu_device());
  const std::vector<float> trained = set.values().to_host<float>();
  load_fixed_weights(kData / "torch_net.safetensors", set);
  CHECK(set.values().to_host<float>() == trained);
  const auto file = read_safetensors(kData / "torch_net.safetensors");
  for (const Parameter* p : set.all())
    if (p->role == Role::fixed && p->name == "4.bias")
      CHECK(p->value.to_host<float>() == file.at("4.bias").values);
  const auto message =
      message_of<UserError>([&] { load_fixed_weights(kData / "torch_net_io.safetensors", set); });
  CHECK(message.ends_with("has no tensor 4.weight, which this model needs"));
}

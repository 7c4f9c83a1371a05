// Inception-v4. The names of the blocks are those of Figures 3 to 9 of the paper.
#include "layers/fork.h"
#include "layers/linear.h"
#include "layers/models/basic_conv.h"
#include "layers/sequential.h"
#include "simulate/nets/nets.h"

namespace tandem {
namespace {

constexpr Pool kHalf{.window = 3, .stride = 2};
constexpr Pool kSmooth{.window = 3, .stride = 1, .padding = 1, .count_padding = false};
constexpr HeightWidth kRow7{1, 7}, kColumn7{7, 1}, kRow3{1, 3}, kColumn3{3, 1};

struct Unit {
  std::int64_t filters;
  HeightWidth window = 1;
  bool same = true;  // pads, so that the image keeps its size
  std::int64_t stride = 1;
};
Unit halved(std::int64_t filters) { return {filters, 3, false, 2}; }
Unit cropped(std::int64_t filters) { return {filters, 3, false}; }

std::unique_ptr<Layer> convolution(std::int64_t in, const Unit& u) {
  const HeightWidth padding = u.same ? HeightWidth{u.window.height / 2, u.window.width / 2} : 0;
  return std::make_unique<BasicConv>(in, u.filters, u.window,
                                     Convolution{.stride = u.stride, .padding = padding},
                                     Random());  // initial values are never made
}

std::unique_ptr<Sequential> chain(std::int64_t in, const std::vector<Unit>& units) {
  auto layers = std::make_unique<Sequential>();
  int number = 0;
  for (const Unit& unit : units) {
    layers->add(std::to_string(number++), convolution(in, unit));
    in = unit.filters;
  }
  return layers;
}

std::unique_ptr<Sequential> pooled(std::int64_t in, std::int64_t filters) {
  auto layers = std::make_unique<Sequential>();
  layers->add<AveragePool>("0", kSmooth);
  layers->add("1", convolution(in, {filters}));
  return layers;
}

std::unique_ptr<Layer> max_pool() { return std::make_unique<MaxPool>(kHalf); }

template <class... Branches>
std::unique_ptr<Layer> fork(Branches... branches) {
  auto all = std::make_unique<Fork>();
  int number = 0;
  (all->add("branch" + std::to_string(number++), std::move(branches)), ...);
  return all;
}

std::unique_ptr<Layer> block_a() {  // 35 x 35 pixels
  return fork(chain(384, {{96}}), chain(384, {{64}, {96, 3}}), chain(384, {{64}, {96, 3}, {96, 3}}),
              pooled(384, 96));
}

std::unique_ptr<Layer> reduction_a() {  // from 35 to 17
  return fork(chain(384, {halved(384)}), chain(384, {{192}, {224, 3}, halved(256)}), max_pool());
}

std::unique_ptr<Layer> block_b() {  // 17 x 17 pixels
  return fork(chain(1024, {{384}}), chain(1024, {{192}, {224, kRow7}, {256, kColumn7}}),
              chain(1024, {{192}, {192, kColumn7}, {224, kRow7}, {224, kColumn7}, {256, kRow7}}),
              pooled(1024, 128));
}

std::unique_ptr<Layer> reduction_b() {  // from 17 to 8
  return fork(chain(1024, {{192}, halved(192)}),
              chain(1024, {{256}, {256, kRow7}, {320, kColumn7}, halved(320)}), max_pool());
}

std::unique_ptr<Layer> block_c() {  // 8 x 8 pixels
  const auto spread = [](std::unique_ptr<Sequential> layers, std::int64_t in) {
    layers->add("spread", fork(chain(in, {{256, kRow3}}), chain(in, {{256, kColumn3}})));
    return layers;
  };
  return fork(chain(1536, {{256}}), spread(chain(1536, {{384}}), 384),
              spread(chain(1536, {{384}, {448, kColumn3}, {512, kRow3}}), 512), pooled(1536, 256));
}

}  // namespace

std::unique_ptr<Layer> inception_v4() {
  auto net = std::make_unique<Sequential>();
  net->add("stem", chain(3, {halved(32), cropped(32), {64, 3}}))
      .add("mixed_3a", fork(max_pool(), chain(64, {halved(96)})))
      .add("mixed_4a", fork(chain(160, {{64}, cropped(96)}),
                            chain(160, {{64}, {64, kRow7}, {64, kColumn7}, cropped(96)})))
      .add("mixed_5a", fork(chain(192, {halved(192)}), max_pool()));
  for (const char* name : {"a1", "a2", "a3", "a4"}) net->add(name, block_a());
  net->add("reduction_a", reduction_a());
  for (const char* name : {"b1", "b2", "b3", "b4", "b5", "b6", "b7"}) net->add(name, block_b());
  net->add("reduction_b", reduction_b());
  for (const char* name : {"c1", "c2", "c3"}) net->add(name, block_c());
  net->add<GlobalAveragePool>("pool").add<Linear>("last_linear", 1536, 1000, Init::xavier_normal,
                                                  Random());
  return net;
}

}  // namespace tandem

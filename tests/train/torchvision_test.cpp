// Nets that torchvision has too: names and shapes of all tensors, and the logits. torchvision made
// the numbers: data/make_torchvision.py.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/hash.h"
#include "layers/models/models.h"
#include "tests/support.h"
#include "train/safetensors.h"
#include "train/weights.h"

using namespace tandem;
using namespace tandem::test;

namespace {

const Shape kImageNet{224, 224, 3};

// In PyTorch's layout.
Shape torch_shape(const Parameter& p) {
  return p.shape.rank() == 4 ? Shape{p.shape[0], p.shape[3], p.shape[1], p.shape[2]} : p.shape;
}

// "22 tensors, 132863336 parameters, hash 0xd0f95bcd62109985", over names and shapes.
std::string summary(Layer& model) {
  std::string lines;
  std::int64_t parameters = 0;
  const auto named = model.parameters();
  for (const auto& [name, p] : named) {
    lines += fmt::format("{} {}\n", name, torch_shape(*p));
    if (p->role != Role::statistic) parameters += p->shape.count();
  }
  return fmt::format("{} tensors, {} parameters, hash {:#018x}", named.size(), parameters,
                     hash_of(std::as_bytes(std::span(lines))));
}

// `count` numbers in [-0.5, 0.5), others for every `number`: noise() of make_torchvision.py.
std::vector<double> noise(std::uint64_t number, std::int64_t count) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i) {
    auto bits = static_cast<std::uint32_t>(static_cast<std::uint64_t>(i) * 2654435761 +
                                           number * 40503 + 12345);
    bits ^= bits >> 15;
    bits *= 2246822519;
    bits ^= bits >> 13;
    values.push_back(bits / 4294967296.0 - 0.5);
  }
  return values;
}

NamedArray made(std::uint64_t number, const std::string& name, const Parameter& p) {
  NamedArray array{name, torch_shape(p), {}};
  const bool around_one = name.ends_with("weight") || name.ends_with("var");
  const std::int64_t fan_in = p.shape.count() / p.shape[0];
  for (const double x : noise(number, p.shape.count()))
    array.values.push_back(
        static_cast<float>(p.shape.rank() > 1 ? x * std::sqrt(24.0 / static_cast<double>(fan_in))
                           : around_one       ? x + 1
                                              : 0.1 * x));
  return array;
}

// The weights take the usual way: through a file as PyTorch's.
std::unique_ptr<ParameterSet> made_weights(Layer& model) {
  std::vector<NamedArray> file;
  for (const auto& [name, p] : model.parameters()) {
    file.push_back(made(file.size(), name, *p));
    p->initial = [count = p->shape.count()] {
      return std::vector<float>(static_cast<std::size_t>(count));
    };
  }
  const TemporaryFolder folder;
  write_safetensors(folder / "weights", file);
  auto set = std::make_unique<ParameterSet>(model.parameters(), cpu_device());
  load_weights(folder / "weights", *set);
  return set;
}

Var two_images(std::int64_t height, std::int64_t width) {
  const std::int64_t pixels = height * width;
  const std::vector<double> planes = noise(1000, 2 * 3 * pixels);  // channels first
  std::vector<float> images;
  for (std::int64_t i = 0; i < 2; ++i)
    for (std::int64_t pixel = 0; pixel < pixels; ++pixel)
      for (std::int64_t channel = 0; channel < 3; ++channel)
        images.push_back(static_cast<float>(
            4 * planes[static_cast<std::size_t>((i * 3 + channel) * pixels + pixel)]));
  return Var{Tensor::from(images, {2, height, width, 3}, cpu_device())};
}

// f32 sums in another order: an error of 1e-5 of the largest.
void check_logits(Layer& model, std::int64_t height, std::int64_t width,
                  const std::vector<float>& expected) {
  Tape tape;
  tape.begin(Tape::Mode::inference);
  const std::vector<float> actual =
      model.forward(tape, two_images(height, width)).value.to_host<float>();
  REQUIRE(actual.size() == expected.size());
  const float largest =
      std::abs(*std::ranges::max_element(expected, {}, [](float x) { return std::abs(x); }));
  for (std::size_t i = 0; i < expected.size(); ++i)
    CHECK_MESSAGE(std::abs(actual[i] - expected[i]) < 1e-5F * largest, actual[i], " instead of ",
                  expected[i]);
}

}  // namespace

TEST_CASE("torchvision: VGG has its names and shapes") {
  const auto of = [](int depth, bool batch_norm) {
    return summary(*vgg({.depth = depth, .batch_norm = batch_norm}, kImageNet, 1000, 1));
  };
  CHECK(of(11, false) == "22 tensors, 132863336 parameters, hash 0xd0f95bcd62109985");
  CHECK(of(11, true) == "54 tensors, 132868840 parameters, hash 0xd15e864d4844a04b");
  CHECK(of(13, false) == "26 tensors, 133047848 parameters, hash 0x7f00c296e8f510fa");
  CHECK(of(13, true) == "66 tensors, 133053736 parameters, hash 0xf4fa8633d483151a");
  CHECK(of(16, false) == "32 tensors, 138357544 parameters, hash 0x8c129676128fe282");
  CHECK(of(16, true) == "84 tensors, 138365992 parameters, hash 0xe9a14fdf2dec0acf");
  CHECK(of(19, false) == "38 tensors, 143667240 parameters, hash 0x95cb94c667c855d2");
  CHECK(of(19, true) == "102 tensors, 143678248 parameters, hash 0x089b126f9edf8466");
}

TEST_CASE("torchvision: VGG gives the same logits") {
  // A sixteenth of the filters, to be quick.
  const auto check = [](int depth, bool batch_norm, std::int64_t height, std::int64_t width,
                        const std::vector<float>& expected) {
    const Vgg narrow{.depth = depth, .batch_norm = batch_norm, .width = 4, .hidden = 24};
    CAPTURE(depth);
    const auto model = vgg(narrow, {height, width, 3}, 5, 1);
    const auto weights = made_weights(*model);
    check_logits(*model, height, width, expected);
  };
  check(11, false, 48, 80,
        {6.0880313F, -14.123099F, 4.4375858F, 7.9196172F, -2.0886652F, 6.2324967F, -14.448483F,
         3.4314444F, 7.6401162F, -2.4971652F});
  check(16, true, 224, 224,
        {9.0946426F, 0.067089438F, 14.926625F, 17.689108F, -14.385745F, 12.767985F, -0.95120722F,
         11.646508F, 19.277845F, -13.099848F});
  check(19, false, 48, 80,
        {1.9775712F, -0.81625116F, -0.76515335F, 0.28012204F, 0.24675462F, 2.0055261F, -0.82673359F,
         -0.50429171F, 0.22444543F, 0.20967419F});
}

TEST_CASE("torchvision: GoogLeNet has its names and shapes") {
  CHECK(summary(*googlenet(kImageNet, 1000, 1)) ==
        "305 tensors, 13004888 parameters, hash 0x84002eb610d97c2b");
}

TEST_CASE("torchvision: GoogLeNet gives the same logits and the same loss") {
  const auto model = googlenet({45, 62, 3}, 5, 1);
  const auto weights = made_weights(*model);
  check_logits(*model, 45, 62,
               {-1.8974524F, -10.738531F, 8.40874F, 1.2805285F, -19.047968F, -3.3299222F,
                -10.673594F, 8.574542F, 0.62816811F, -18.196556F});

  // Of the three classifiers, without dropout.
  const std::vector<std::int32_t> classes = {1, 3};
  Tape tape;
  tape.begin(Tape::Mode::inference);
  const Var loss =
      model->loss(tape, two_images(45, 62), Tensor::from(classes, {2}, cpu_device()), {});
  CHECK(std::abs(loss.value.item() - 18.872688F) < 1e-4F);
}

TEST_CASE("torchvision: Inception-v3 has its names and shapes") {
  CHECK(summary(*inception_v3({299, 299, 3}, 1000, 1)) ==
        "484 tensors, 27161264 parameters, hash 0xd17fec45915f0072");
}

TEST_CASE("torchvision: Inception-v3 gives the same logits and the same loss") {
  // An eighth of the filters, to be quick.
  const auto model = inception_v3({299, 299, 3}, 5, 1, 8);
  const auto weights = made_weights(*model);
  check_logits(*model, 75, 75,
               {0.12927927F, 0.09697073F, -0.11372521F, 0.10695156F, 0.29067379F, 0.13291456F,
                0.12154631F, -0.14335224F, 0.16101161F, 0.32911271F});
  check_logits(*model, 139, 112,
               {1.2718138F, 0.18590163F, -0.26945117F, 0.11979762F, 0.58535749F, 1.2821989F,
                0.27406901F, -0.3908737F, 0.039363693F, 0.55271077F});
  check_logits(*model, 299, 299,
               {2.2096179F, -0.1142959F, 0.9523477F, -0.8898567F, 0.86458158F, 2.1095114F,
                -0.10281295F, 1.0336576F, -0.90182072F, 0.77887678F});

  // Of both classifiers, without dropout.
  const std::vector<std::int32_t> classes = {1, 3};
  Tape tape;
  tape.begin(Tape::Mode::inference);
  const Var loss =
      model->loss(tape, two_images(299, 299), Tensor::from(classes, {2}, cpu_device()), {});
  CHECK(std::abs(loss.value.item() - 3.5206242F) < 1e-5F);
}

// The convolutional nets: names, shapes and counts match PyTorch's. Building a model does not
// allocate weights (its ParameterSet does), so large models cost nothing here.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <memory>

#include "layers/models/models.h"
#include "tests/support.h"

using namespace tandem;
using namespace tandem::test;

namespace {

const Shape kImageNet{224, 224, 3}, kCifar{32, 32, 3};

// Of the weights, trained and fixed.
std::int64_t count(Layer& model) {
  std::int64_t total = 0;
  for (const auto& [name, p] : model.parameters())
    if (p->role != Role::statistic) total += p->shape.count();
  return total;
}

std::map<std::string, Shape> shapes(Layer& model) {
  std::map<std::string, Shape> all;
  for (const auto& [name, p] : model.parameters()) all.emplace(name, p->shape);
  return all;
}

// Of a forward of random weights over a batch of two.
Shape logits(Layer& model, const Shape& image) {
  const ParameterSet set(model.parameters(), cpu_device());
  Tape tape;
  tape.begin(Tape::Mode::inference);
  const Var y = model.forward(
      tape, Var{Tensor::zeros({2, image[0], image[1], image[2]}, Dtype::f32, set.device())});
  return y.value.shape();
}

}  // namespace

TEST_CASE("models: the CIFAR net is three convolutions and two fully connected layers") {
  const auto model = cifar_cnn(kCifar, 100, 1);
  const std::vector<std::pair<std::string, Shape>> expected = {
      {"0.weight", {32, 5, 5, 3}},  {"0.bias", {32}},
      {"3.weight", {32, 5, 5, 32}}, {"3.bias", {32}},
      {"6.weight", {64, 5, 5, 32}}, {"6.bias", {64}},
      {"10.weight", {64, 1024}},    {"10.bias", {64}},
      {"12.weight", {100, 64}},     {"12.bias", {100}}};
  const auto named = model->parameters();
  REQUIRE(named.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK(named[i].name == expected[i].first);
    CHECK(named[i].parameter->shape == expected[i].second);
    CHECK(named[i].parameter->trained());
  }
  CHECK(named[6].parameter->image == Shape{4, 4, 64});
  CHECK(count(*model) == 151'428);
  CHECK(logits(*model, kCifar) == Shape{2, 100});
}

TEST_CASE("models: only the last layer of the convex CIFAR net is trained") {
  CifarConvex model(kCifar, 100, 1);
  const auto other = cifar_cnn(kCifar, 100, 1);
  const ParameterSet set(model.parameters(), cpu_device());
  REQUIRE(set.trained().size() == 2);
  CHECK(set.trained()[0]->name == "12.weight");
  CHECK(set.trained()[1]->name == "12.bias");
  CHECK(set.count() == 151'428);
  // It begins where the whole net begins.
  const ParameterSet whole(other->parameters(), cpu_device());
  for (std::size_t i = 0; i < whole.all().size(); ++i)
    CHECK(set.all()[i]->value.to_host<float>() == whole.all()[i]->value.to_host<float>());

  Tape tape;
  tape.begin(Tape::Mode::training);
  const Var y =
      model.forward(tape, Var{random_tensor({2, 32, 32, 3}, 1, Dtype::f32, set.device())});
  const std::vector<std::int32_t> labels = {1, 2};
  tape.backward(softmax_cross_entropy(tape, y, Tensor::from(labels, {2}, set.device())), set);
  double sum = 0;
  for (const float g : set.gradients().to_host<float>()) sum += std::abs(g);
  CHECK(sum > 0);
}

TEST_CASE("models: AlexNet in both forms") {
  const auto owt = alexnet_owt(kImageNet, 1000, 1);
  CHECK(count(*owt) == 61'100'840);
  const std::map<std::string, Shape> expected = {
      {"features.0.weight", {64, 11, 11, 3}},   {"features.0.bias", {64}},
      {"features.3.weight", {192, 5, 5, 64}},   {"features.3.bias", {192}},
      {"features.6.weight", {384, 3, 3, 192}},  {"features.6.bias", {384}},
      {"features.8.weight", {256, 3, 3, 384}},  {"features.8.bias", {256}},
      {"features.10.weight", {256, 3, 3, 256}}, {"features.10.bias", {256}},
      {"classifier.1.weight", {4096, 9216}},    {"classifier.1.bias", {4096}},
      {"classifier.4.weight", {4096, 4096}},    {"classifier.4.bias", {4096}},
      {"classifier.6.weight", {1000, 4096}},    {"classifier.6.bias", {1000}}};
  CHECK(shapes(*owt) == expected);
  for (const auto& [name, p] : owt->parameters())
    if (name == "classifier.1.weight") CHECK(p->image == Shape{6, 6, 256});

  for (const std::int64_t pixels : {224, 227}) {
    const auto classic = alexnet_classic({pixels, pixels, 3}, 1000, 1);
    CHECK(count(*classic) == 60'965'224);
    const auto of = shapes(*classic);
    CHECK(of.at("features.0.weight") == Shape{96, 11, 11, 3});
    CHECK(of.at("features.4.weight") == Shape{256, 5, 5, 48});
    CHECK(of.at("features.8.weight") == Shape{384, 3, 3, 256});
    CHECK(of.at("features.10.weight") == Shape{384, 3, 3, 192});
    CHECK(of.at("features.12.weight") == Shape{256, 3, 3, 192});
  }
}

TEST_CASE("models: AlexNet's weights have the same shapes for images of all sizes") {
  for (const auto make : {alexnet_owt, alexnet_classic}) {
    const auto usual = make(kImageNet, 10, 1);
    for (const Shape& image : {Shape{63, 63, 3}, {64, 200, 3}, {227, 227, 3}, {500, 300, 3}}) {
      const auto other = make(image, 10, 1);
      CHECK(shapes(*other) == shapes(*usual));
      for (const auto& [name, p] : other->parameters())
        if (name == "classifier.1.weight") CHECK(p->image == Shape{6, 6, 256});
    }
  }
}

TEST_CASE("models: VGG for CIFAR has the same convolutions and one linear layer") {
  const std::map<int, std::int64_t> counts = {
      {11, 9'225'610}, {13, 9'410'122}, {16, 14'719'818}, {19, 20'029'514}};
  for (const int depth : vgg_depths()) {
    CAPTURE(depth);
    const auto model = cifar_vgg({.depth = depth}, kCifar, 10, 1);
    CHECK(count(*model) == counts.at(depth));
    auto expected = shapes(*vgg({.depth = depth}, kImageNet, 10, 1));
    std::erase_if(expected, [](const auto& each) { return each.first.starts_with("classifier"); });
    expected.insert({{"classifier.weight", {10, 512}}, {"classifier.bias", {10}}});
    CHECK(shapes(*model) == expected);
  }
  CHECK_THROWS_AS(vgg({.depth = 18}, kImageNet, 1000, 1), std::logic_error);
}

TEST_CASE("models: residual nets have torchvision's counts") {
  const std::map<int, std::int64_t> counts = {
      {18, 11'689'512}, {34, 21'797'672}, {50, 25'557'032}, {101, 44'549'160}, {152, 60'192'808}};
  for (const int depth : resnet_depths()) {
    CAPTURE(depth);
    CHECK(count(*resnet(depth, kImageNet, 1000, 1)) == counts.at(depth));
  }
  // The paper's 0.27 M, 0.46 M, 0.66 M, 0.85 M and 1.7 M, and 2,752 for the two projections.
  const std::map<int, std::int64_t> small = {
      {20, 272'474}, {32, 466'906}, {44, 661'338}, {56, 855'770}, {110, 1'730'714}};
  for (const int depth : cifar_resnet_depths()) {
    CAPTURE(depth);
    CHECK(count(*cifar_resnet(depth, kCifar, 10, 1)) == small.at(depth));
  }
  CHECK_THROWS_AS(resnet(20, kImageNet, 1000, 1), std::logic_error);
  CHECK_THROWS_AS(cifar_resnet(18, kCifar, 10, 1), std::logic_error);
}

TEST_CASE("models: residual nets have torchvision's names, in its order") {
  const auto basic = resnet(18, kImageNet, 1000, 1);
  const auto named = basic->parameters();
  const std::vector<std::string> first = {"conv1.weight",       "bn1.weight",
                                          "bn1.bias",           "bn1.running_mean",
                                          "bn1.running_var",    "layer1.0.conv1.weight",
                                          "layer1.0.bn1.weight"};
  for (std::size_t i = 0; i < first.size(); ++i) CHECK(named[i].name == first[i]);
  CHECK(named.back().name == "fc.bias");
  CHECK(named.size() == 102);  // torchvision's 122 less 20 counters

  const auto of = shapes(*resnet(50, kImageNet, 1000, 1));
  CHECK(of.size() == 267);  // 320 less 53
  CHECK(of.at("conv1.weight") == Shape{64, 7, 7, 3});
  CHECK(of.at("layer1.0.downsample.0.weight") == Shape{256, 1, 1, 64});
  CHECK(of.at("layer1.0.downsample.1.running_var") == Shape{256});
  CHECK(of.at("layer2.0.conv1.weight") == Shape{128, 1, 1, 256});
  CHECK(of.at("layer2.0.conv2.weight") == Shape{128, 3, 3, 128});
  CHECK(of.at("layer4.2.conv3.weight") == Shape{2048, 1, 1, 512});
  CHECK(of.at("fc.weight") == Shape{1000, 2048});
  CHECK(!of.contains("layer1.1.downsample.0.weight"));

  const auto cifar = shapes(*cifar_resnet(20, kCifar, 10, 1));
  CHECK(!cifar.contains("layer1.0.downsample.0.weight"));
  CHECK(cifar.at("layer2.0.downsample.0.weight") == Shape{32, 1, 1, 16});
  CHECK(cifar.at("fc.weight") == Shape{10, 64});
}

TEST_CASE("models: GoogLeNet's loss trains its auxiliary classifiers too") {
  const auto model = googlenet({32, 32, 3}, 5, 1);
  const ParameterSet set(model->parameters(), cpu_device());
  Tape tape;
  tape.begin(Tape::Mode::training);
  const Var x{random_tensor({2, 32, 32, 3}, 1, Dtype::f32, set.device())};
  const std::vector<std::int32_t> labels = {1, 2};
  // Throws if a trained parameter is not reached.
  tape.backward(model->loss(tape, x, Tensor::from(labels, {2}, set.device()), {}), set);
  for (const Parameter* p : set.trained())
    if (p->name == "aux1.fc2.bias" || p->name == "aux2.fc2.bias" || p->name == "fc.bias") {
      // The gradient of a softmax cross-entropy: the weight times the probabilities less the
      // target.
      const double weight = p->name == "fc.bias" ? 1 : 0.3;
      const std::vector<float> g = p->gradient.to_host<float>();
      double positive = 0, sum = 0;
      for (const float value : g) sum += value, positive += std::max(value, 0.0F);
      CAPTURE(p->name);
      CHECK(std::abs(sum) < 1e-6);
      CHECK(positive > 0.1 * weight);
      CHECK(positive < weight);
    }
}

TEST_CASE("models: Inception-v3's loss trains its auxiliary classifier, also on small images") {
  for (const std::int64_t pixels : {75, 107}) {
    const auto model = inception_v3({pixels, pixels, 3}, 5, 1, 16);
    const ParameterSet set(model->parameters(), cpu_device());
    Tape tape;
    tape.begin(Tape::Mode::training);
    const Var x{random_tensor({2, pixels, pixels, 3}, 1, Dtype::f32, set.device())};
    const std::vector<std::int32_t> labels = {1, 2};
    // Throws if a trained parameter is not reached.
    tape.backward(model->loss(tape, x, Tensor::from(labels, {2}, set.device()), {}), set);
  }
}

// Algorithms replace weights during backward, as soon as their gradients are ready.
TEST_CASE("models: backward does not read a parameter again when its gradient is ready") {
  struct Spoiler : Hooks {
    void on_grad_ready(Parameter& p) override {
      p.value.backend().fill(p.value, std::numeric_limits<double>::quiet_NaN());
    }
  } spoiler;
  using Make = std::function<std::unique_ptr<Layer>()>;
  const auto gradients = [](const Make& make, const Shape& image, Hooks* hooks) {
    const auto model = make();
    const ParameterSet set(model->parameters(), cpu_device());
    Tape tape;
    tape.set_hooks(hooks);
    tape.begin(Tape::Mode::training);
    const Shape batch{2, image[0], image[1], image[2]};
    const Var x{random_tensor(batch, 1, Dtype::f32, set.device())};
    const std::vector<std::int32_t> labels = {1, 2};
    tape.backward(model->loss(tape, x, Tensor::from(labels, {2}, set.device()), {}), set);
    return set.gradients().to_host<float>();
  };
  const auto check = [&](const Shape& image, const Make& make) {
    Hooks none;
    CHECK(gradients(make, image, &spoiler) == gradients(make, image, &none));
  };
  const Vgg narrow{.depth = 11, .batch_norm = true, .width = 4, .hidden = 16};
  check({28, 28, 1}, [] { return mnist_mlp(1); });
  check(kCifar, [] { return cifar_cnn(kCifar, 5, 1); });
  check(kCifar, [] { return cifar_resnet(20, kCifar, 5, 1); });
  check(kCifar, [] { return resnet(50, kCifar, 5, 1); });
  check(kCifar, [] { return googlenet(kCifar, 5, 1); });
  check(kCifar, [&] { return vgg(narrow, kCifar, 5, 1); });
  check({63, 63, 3}, [] { return alexnet_classic({63, 63, 3}, 5, 1); });
  check({75, 75, 3}, [] { return inception_v3({75, 75, 3}, 5, 1, 16); });
}

TEST_CASE("models: small images work") {
  CHECK(logits(*inception_v3({75, 75, 3}, 7, 1, 16), {75, 75, 3}) == Shape{2, 7});
  CHECK(logits(*googlenet({15, 15, 3}, 7, 1), {15, 15, 3}) == Shape{2, 7});
  CHECK(logits(*cifar_resnet(20, {8, 8, 3}, 10, 1), {8, 8, 3}) == Shape{2, 10});
  CHECK(logits(*resnet(18, {32, 32, 3}, 7, 1), {32, 32, 3}) == Shape{2, 7});
  CHECK(logits(*alexnet_classic({63, 63, 3}, 7, 1), {63, 63, 3}) == Shape{2, 7});
  const Vgg narrow{.depth = 11, .batch_norm = true, .width = 4, .hidden = 16};
  CHECK(logits(*vgg(narrow, {32, 32, 3}, 7, 1), {32, 32, 3}) == Shape{2, 7});
  CHECK(logits(*cifar_vgg(narrow, {32, 32, 3}, 7, 1), {32, 32, 3}) == Shape{2, 7});
}

TEST_CASE("models: an image that is too small is refused with a message") {
  CHECK(message_of<UserError>([] {
          inception_v3({74, 299, 3}, 10, 1);
        }) == "Inception-v3 needs images of at least 75 x 75 pixels, not 299 x 74");
  CHECK(message_of<UserError>([] {
          googlenet({20, 14, 3}, 10, 1);
        }) == "GoogLeNet needs images of at least 15 x 15 pixels, not 14 x 20");
  CHECK(message_of<UserError>([] {
          alexnet_owt({62, 70, 3}, 10, 1);
        }) == "AlexNet needs images of at least 63 x 63 pixels, not 70 x 62");
  CHECK(message_of<UserError>([] {
          resnet(50, {16, 16, 3}, 10, 1);
        }) == "ResNet-50 needs images of at least 32 x 32 pixels, not 16 x 16");
  CHECK(message_of<UserError>([] {
          cifar_resnet(20, {4, 32, 3}, 10, 1);
        }) == "ResNet-20 needs images of at least 8 x 8 pixels, not 32 x 4");
  CHECK(message_of<UserError>([] {
          vgg({.depth = 19}, {31, 40, 3}, 10, 1);
        }) == "VGG-19 needs images of at least 32 x 32 pixels, not 40 x 31");
  CHECK(message_of<UserError>([] {
          cifar_cnn({7, 7, 3}, 10, 1);
        }) == "the CIFAR net needs images of at least 8 x 8 pixels, not 7 x 7");
}

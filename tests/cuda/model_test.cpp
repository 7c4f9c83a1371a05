// Whole nets: the loss and every parameter's gradient on the GPU compared with the CPU's, for the
// same weights, images and random numbers.
#include "layers/models/models.h"

#include <limits>
#include <map>

#include "tests/cuda/compare.h"

using namespace tandem;
using namespace tandem::test;

namespace {

using Make = std::function<std::unique_ptr<Layer>()>;

// Of the loss, relative; of the difference of a gradient, relative to its norm.
//
// A ReLU or a maximum whose inputs are within rounding of each other may let another gradient
// through. That happens to as large a share of the elements as the rounding is large, and changes
// the gradient by the root of that share: 1e-6 becomes 1e-3. Every batch norm passes it on and
// every layer adds its own, so that deep nets with random weights are much further apart than plain
// ones. (About 1.5 times what rounding every result on the CPU comes to.)
//
// Nets of many branches and maxima are the furthest apart: on the CPU, rounding the weights to fp32
// changes gradients of Inception-v3 by up to 8%, and rounding them to tf32 by more than their norm.
// So in tf32 and bf16 only their loss is compared. With 8 images of 107 pixels, rounding the
// weights to tf32 changes it by up to 1.0%; with 32 images of 139 pixels, by up to 0.4%.
struct Tolerance {
  double loss, gradient;
  double cosine;  // of parameters that have more than 100 elements
};
enum class Net { plain, residual, branching };
Tolerance tolerance(Precision precision, Net net) {
  constexpr double kAny = std::numeric_limits<double>::infinity();
  const auto choose = [&](Tolerance plain, Tolerance residual, Tolerance branching) {
    return net == Net::plain ? plain : net == Net::residual ? residual : branching;
  };
  switch (precision) {
    case Precision::fp32:
      return choose({1e-5, 5e-3, 0.9999}, {1e-4, 3e-2, 0.999}, {1e-4, 0.12, 0.996});
    case Precision::tf32:
      return choose({1e-3, 0.1, 0.99}, {1e-3, 0.3, 0.98}, {1e-2, kAny, -1});
    case Precision::bf16:
      return choose({5e-3, 0.3, 0.97}, {2e-2, 0.85, 0.85}, {5e-2, kAny, -1});
  }
  return {};
}

struct Result {
  double loss = 0;
  std::vector<std::string> names;
  std::vector<std::vector<float>> gradients;  // by parameter
};

Result step(const Make& make, const Device& device, Dtype dtype, const Tensor& images,
            const Tensor& labels) {
  const auto model = make();
  const ParameterSet parameters(model->parameters(), device, dtype);
  const Random random(5);
  Tape tape;
  device.backend().begin_step(random);
  tape.begin(Tape::Mode::training, random);
  const Var loss = model->loss(tape, Var{images}, labels, {});
  tape.backward(loss, parameters);
  Result result{.loss = loss.value.item()};
  for (const Parameter* p : parameters.trained()) {
    result.names.push_back(p->name);
    result.gradients.push_back(floats(p->gradient));
  }
  return result;
}

void check_gradient(const std::vector<float>& expected, const std::vector<float>& values,
                    const Tolerance& allowed) {
  REQUIRE(values.size() == expected.size());
  double difference = 0, norm = 0, other = 0, product = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double e = expected[i], v = values[i];
    difference += (v - e) * (v - e);
    norm += e * e;
    other += v * v;
    product += v * e;
  }
  CHECK(norm > 0);
  const double distance = std::sqrt(difference / norm), cosine = product / std::sqrt(norm * other);
  CHECK_MESSAGE(distance <= allowed.gradient, distance);
  if (values.size() > 100) CHECK_MESSAGE(cosine >= allowed.cosine, cosine);
}

void check(Net net, const Make& make, const Shape& images, std::int64_t classes) {
  std::map<Dtype, Result> on_cpu;  // by what the pixels are rounded to
  for (const Precision precision : kPrecisions)
    for (const bool deterministic : {false, true}) {
      CAPTURE(name_of(precision));
      CAPTURE(deterministic);
      const Sides sides(precision, deterministic);
      std::vector<float> pixels;
      std::vector<std::int32_t> labels;
      Random random(1);
      for (std::int64_t i = 0; i < images.count(); ++i)
        pixels.push_back(static_cast<float>(random.normal()));
      for (std::int64_t i = 0; i < images[0]; ++i)
        labels.push_back(static_cast<std::int32_t>(i * 3 % classes));
      const Both x = sides.from(pixels, images, sides.dtype);
      const Both y = sides.from(labels, {images[0]});
      if (!on_cpu.contains(sides.dtype))
        on_cpu[sides.dtype] = step(make, sides.cpu, Dtype::f32, x.cpu, y.cpu);
      const Result& expected = on_cpu[sides.dtype];
      const Result result = step(make, sides.gpu, sides.dtype, x.gpu, y.gpu);

      const Tolerance allowed = tolerance(precision, net);
      CHECK(result.loss == doctest::Approx(expected.loss).epsilon(allowed.loss));
      REQUIRE(result.names == expected.names);
      for (std::size_t i = 0; i < result.names.size(); ++i) {
        CAPTURE(result.names[i]);
        check_gradient(expected.gradients[i], result.gradients[i], allowed);
      }
    }
}

}  // namespace

TEST_CASE("cuda: model: gradients of the MLP") {
  check(
      Net::plain, [] { return mnist_mlp(1); }, {50, 28, 28, 1}, 10);
}

TEST_CASE("cuda: model: gradients of the CIFAR net") {
  check(
      Net::plain,
      [] {
        return cifar_cnn({32, 32, 3}, 100, 1);
      },
      {16, 32, 32, 3}, 100);
}

TEST_CASE("cuda: model: gradients of the convex CIFAR net") {
  check(
      Net::plain,
      [] {
        return std::make_unique<CifarConvex>(Shape{32, 32, 3}, 10, 1);
      },
      {16, 32, 32, 3}, 10);
}

TEST_CASE("cuda: model: gradients of ResNet-20") {
  check(
      Net::residual,
      [] {
        return cifar_resnet(20, {32, 32, 3}, 10, 1);
      },
      {16, 32, 32, 3}, 10);
}

TEST_CASE("cuda: model: gradients of ResNet-18") {
  check(
      Net::residual,
      [] {
        return resnet(18, {64, 64, 3}, 20, 1);
      },
      {8, 64, 64, 3}, 20);
}

TEST_CASE("cuda: model: gradients of AlexNet in both forms, with the CPU's dropout") {
  check(
      Net::plain,
      [] {
        return alexnet_owt({64, 64, 3}, 20, 1);
      },
      {8, 64, 64, 3}, 20);
  check(
      Net::plain,
      [] {
        return alexnet_classic({64, 64, 3}, 20, 1);
      },
      {8, 64, 64, 3}, 20);
}

// Not with batch norm: the gradient of a bias before it is zero but for rounding.
TEST_CASE("cuda: model: gradients of VGG-11") {
  check(
      Net::plain,
      [] {
        return vgg({.depth = 11, .width = 16, .hidden = 256}, {64, 64, 3}, 20, 1);
      },
      {8, 64, 64, 3}, 20);
}

TEST_CASE("cuda: model: gradients of GoogLeNet with its auxiliary classifiers") {
  check(
      Net::branching,
      [] {
        return googlenet({64, 64, 3}, 20, 1);
      },
      {8, 64, 64, 3}, 20);
}

TEST_CASE("cuda: model: gradients of Inception-v3 with its auxiliary classifier") {
  check(
      Net::branching,
      [] {
        return inception_v3({139, 139, 3}, 20, 1, 2);
      },
      {32, 139, 139, 3}, 20);
}

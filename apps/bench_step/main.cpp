// Times a training step (forward, backward, SGD with momentum) on random data.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <map>
#include <new>
#include <nlohmann/json.hpp>

#include "autograd/sgd.h"
#include "base/clock.h"
#include "base/statistics.h"
#include "layers/models/models.h"
#include "tensor/cuda/cuda_backend.h"
#include "train/app.h"
#include "train/command_line.h"
#include "train/reporting.h"
#include "train/step_runner.h"

// Counts every `new` of this program, including the memory pool's: a warm step must not allocate.
// (Not inlined, because the compiler would see free() paired with new, and warn.)
namespace {
std::atomic<std::int64_t> allocations = 0;

[[gnu::noinline]] void* allocate(std::size_t bytes, std::size_t alignment) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}
void* or_throw(void* memory) { return memory ? memory : throw std::bad_alloc(); }
[[gnu::noinline]] void release(void* memory) noexcept { std::free(memory); }
}  // namespace

void* operator new(std::size_t bytes) {
  return or_throw(allocate(bytes, alignof(std::max_align_t)));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return or_throw(allocate(bytes, static_cast<std::size_t>(alignment)));
}
void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { release(memory); }
void operator delete(void* memory, std::size_t) noexcept { release(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { release(memory); }

using namespace tandem;

namespace {

struct Model {
  std::function<std::unique_ptr<Layer>(const Shape& image, std::int64_t classes)> make;
  Shape image;  // [height, width, channels]
  std::int64_t classes;
  std::int64_t batch;  // by default
};

constexpr std::uint64_t kSeed = 1;
constexpr int kTogether = 10;

Model resnet_of(int depth, std::int64_t batch) {
  return {[=](const Shape& image, std::int64_t classes) {
            return resnet(depth, image, classes, kSeed);
          },
          {224, 224, 3},
          1000,
          batch};
}

Model vgg_of(int depth, std::int64_t batch) {
  return {[=](const Shape& image, std::int64_t classes) {
            return vgg({.depth = depth}, image, classes, kSeed);
          },
          {224, 224, 3},
          1000,
          batch};
}

// The same models as in torch_step.py.
const std::map<std::string, Model> kModels = {
    {"mnist_mlp",
     {[](const Shape&, std::int64_t) { return mnist_mlp(kSeed); }, {28, 28, 1}, 10, 100}},
    {"cifar_cnn",
     {[](const Shape& image, std::int64_t classes) { return cifar_cnn(image, classes, kSeed); },
      {32, 32, 3},
      100,
      100}},
    {"alexnet",
     {[](const Shape& image, std::int64_t classes) { return alexnet_owt(image, classes, kSeed); },
      {224, 224, 3},
      1000,
      16}},
    {"resnet18", resnet_of(18, 8)},
    {"resnet50", resnet_of(50, 4)},
    {"resnet20",
     {[](const Shape& image, std::int64_t classes) {
        return cifar_resnet(20, image, classes, kSeed);
      },
      {32, 32, 3},
      10,
      128}},
    {"googlenet",
     {[](const Shape& image, std::int64_t classes) { return googlenet(image, classes, kSeed); },
      {224, 224, 3},
      1000,
      8}},
    {"inception",
     {[](const Shape& image, std::int64_t classes) { return inception_v3(image, classes, kSeed); },
      {299, 299, 3},
      1000,
      4}},
    {"vgg16", vgg_of(16, 4)},
    {"vgg19", vgg_of(19, 4)},
    {"vgg16_cifar",
     {[](const Shape& image, std::int64_t classes) {
        return cifar_vgg({.depth = 16}, image, classes, kSeed);
      },
      {32, 32, 3},
      10,
      64}},
};

struct Options {
  std::string model = "mnist_mlp";
  std::int64_t batch = 0;  // 0: the model's default
  DeviceKind device = DeviceKind::cpu;
  Precision precision = Precision::fp32;
  bool graphs = true;
  bool deterministic = false, choices = false;
  int threads = 1;
  int iterations = 200;
  int warmup = 20;
  bool json = false;
};

bool parse(int argc, char** argv, Options& o) {
  CLI::App app("Times a training step (forward, backward, SGD with momentum) on random data.");
  set_conventions(app);
  std::vector<std::string> names;
  for (const auto& [name, model] : kModels) names.push_back(name);
  app.add_option("--model", o.model, "Which net to train")->check(CLI::IsMember(names));
  app.add_option("--batch", o.batch, "Samples per step; the default depends on the model")
      ->check(CLI::Range(1, 1 << 20))
      ->default_str("");
  std::string device = to_string(o.device), precision = to_string(o.precision), graphs = "on";
  app.add_option("--device", device, "cpu or cuda")->check(CLI::IsMember(names_of<DeviceKind>()));
  app.add_option("--precision", precision, "cuda: fp32, tf32 or bf16")
      ->check(CLI::IsMember(names_of<Precision>()));
  app.add_option("--graphs", graphs, "cuda: record a step and replay it")
      ->check(CLI::IsMember({"on", "off"}));
  app.add_flag("--deterministic", o.deterministic, "cuda: the same bits every time");
  app.add_flag("--choices", o.choices, "cuda: list the algorithms that were chosen");
  app.add_option("--threads", o.threads, "Compute threads of the CPU")->check(CLI::Range(1, 1024));
  app.add_option("--iterations", o.iterations, "Steps to time")->check(CLI::Range(1, 1 << 30));
  app.add_option("--warmup", o.warmup, "Steps before the timing begins")
      ->check(CLI::Range(1, 1 << 30));
  app.add_flag("--json", o.json, "Print one JSON object");
  if (!parse_command_line(app, argc, argv)) return false;
  if (o.batch == 0) o.batch = kModels.at(o.model).batch;
  o.device = from_string<DeviceKind>(device).value();
  o.precision = from_string<Precision>(precision).value();
  o.graphs = graphs == "on";
  if (o.device == DeviceKind::cpu && o.precision != Precision::fp32)
    throw UserError("--precision {} needs --device cuda", precision);
  return true;
}

Device make_device(const Options& o) {
  if (o.device == DeviceKind::cpu) return cpu_device(o.threads);
  return cuda_device({.precision = o.precision, .deterministic = o.deterministic});
}

// Random images and labels, fixed for all steps.
Batch make_batch(const Model& model, std::int64_t count, const Device& device, Dtype dtype) {
  Random random(1);
  std::vector<float> pixels(static_cast<std::size_t>(count * model.image.count()));
  for (float& pixel : pixels) pixel = static_cast<float>(random.normal());
  std::vector<std::int32_t> classes(static_cast<std::size_t>(count));
  for (auto& c : classes)
    c = static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(model.classes)));
  const Tensor images =
      Tensor::from(pixels, {count, model.image[0], model.image[1], model.image[2]}, device);
  Batch batch{Tensor::empty(images.shape(), dtype, device), Tensor::from(classes, {count}, device)};
  device.backend().cast(images, batch.images);
  return batch;
}

struct Result {
  std::vector<double> ms;
  double allocations_per_step;
  double device_mb = 0;
  std::string choices;
};

Result measure(const Options& o) {
  const Model& model = kModels.at(o.model);
  const Device device = make_device(o);
  Backend& backend = device.backend();
  const Dtype dtype = activation_dtype(o.precision);
  const auto net = model.make(model.image, model.classes);
  ParameterSet parameters(net->parameters(), device, dtype);
  Schedule schedule;
  schedule.base = 1e-3;
  Sgd sgd(parameters, {.schedule = schedule, .momentum = 0.9});
  Tape tape;
  Spans spans;
  Hooks hooks;
  Random random;
  const Batch batch = make_batch(model, o.batch, device, dtype);
  const auto forward = [&](const Batch& b) {
    tape.begin(Tape::Mode::training, random);
    return net->loss(tape, Var{b.images}, b.labels, {});
  };
  StepRunner steps(!device.is_cpu() && o.graphs, forward, hooks, parameters, tape, spans);

  const auto step = [&](std::int64_t t) {
    random = Random(1).split(static_cast<std::uint64_t>(t));
    backend.begin_step(random);
    steps.run(batch);
    sgd.update(t);
  };

  Result result;
  result.ms.reserve(static_cast<std::size_t>(o.iterations));
  std::int64_t t = 0;
  for (int i = 0; i < o.warmup; ++i) step(++t);
  const std::int64_t before = allocations.load();
  if (device.is_cpu())
    for (int i = 0; i < o.iterations; ++i) {
      const auto begin = Clock::now();
      step(++t);
      result.ms.push_back(1e3 * seconds_between(begin, Clock::now()));
    }
  else
    // By the GPU's clock, several steps at a time, so that the GPU is never idle.
    for (int i = 0; i < o.iterations; i += kTogether) {
      const EventPtr begin = backend.record_event(Event::Timing::on);
      for (int k = 0; k < kTogether; ++k) step(++t);
      const EventPtr end = backend.record_event(Event::Timing::on);
      end->wait();
      result.ms.push_back(1e3 * end->seconds_since(*begin) / kTogether);
    }
  result.allocations_per_step =
      static_cast<double>(allocations.load() - before) / static_cast<double>(o.iterations);
  if (!device.is_cpu()) result.device_mb = static_cast<double>(backend.memory().held_bytes()) / 1e6;
  result.choices = backend.describe_choices();
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  return run_app("bench_step", [&] {
    Options o;
    if (!parse(argc, argv, o)) return;
    const Result result = measure(o);
    const double median = quantile(result.ms, 0.5), min = quantile(result.ms, 0),
                 p95 = quantile(result.ms, 0.95);
    const double samples_per_s = 1e3 * static_cast<double>(o.batch) / median;
    if (o.json) {
      const nlohmann::ordered_json json = {{"model", o.model},
                                           {"batch", o.batch},
                                           {"device", to_string(o.device)},
                                           {"precision", to_string(o.precision)},
                                           {"threads", o.threads},
                                           {"iterations", o.iterations},
                                           {"median_ms", median},
                                           {"min_ms", min},
                                           {"p95_ms", p95},
                                           {"samples_per_s", samples_per_s},
                                           {"allocations_per_step", result.allocations_per_step},
                                           {"peak_memory_mb", peak_memory_mb()},
                                           {"device_memory_mb", result.device_mb}};
      fmt::print("{}\n", json.dump());
    } else if (o.device == DeviceKind::cuda) {
      fmt::print(
          "{} batch {}, cuda {}: {:.4f} ms (median of {}, {} at a time; min {:.4f}, 95% {:.4f}), "
          "{:.0f} samples/s, device memory {:.0f} MB\n",
          o.model, o.batch, to_string(o.precision), median, o.iterations, kTogether, min, p95,
          samples_per_s, result.device_mb);
    } else {
      fmt::print(
          "{} batch {}, {} thread{}: {:.3f} ms (median of {}; min {:.3f}, 95% {:.3f}), "
          "{:.0f} samples/s, {:g} allocations per step, peak memory {:.0f} MB\n",
          o.model, o.batch, o.threads, o.threads == 1 ? "" : "s", median, o.iterations, min, p95,
          samples_per_s, result.allocations_per_step, peak_memory_mb());
    }
    if (o.choices) fmt::print("{}", result.choices);
  });
}

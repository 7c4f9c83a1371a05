#include "simulate/devices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "train/json_input.h"

namespace tandem {

// flop_per_s is what ResNet-50 reaches: its images per second times 24.5 GFLOP.
const std::vector<DeviceSpeed>& device_speeds() {
  static const std::vector<DeviceSpeed> kDevices = {
      {.name = "k80",
       .source =
           "one of a K80 card's two GPUs: measurements of MG-WFBP's authors, GoogLeNet 81.68 "
           "images/s per GPU (batch 64), ResNet-50 76.85 images/s per card (batch 32 per GPU)",
       .flop_per_s = 0.941e12,
       .samples_per_s = {{"googlenet", 81.68}, {"resnet50", 76.85 / 2}}},
      // Four machines send and receive 2·3/4·102 MB each; at 4 Gbit/s that takes 307 ms.
      {.name = "p4000",
       .source =
           "estimate: with P3, ResNet-50 on 4 machines slows down below 4 Gbit/s (Figure 7 of "
           "its paper), so 32 images (a batch that the paper does not state) take 307 ms; the "
           "peak is 5.3 TFLOP/s",
       .flop_per_s = 2.55e12},
      {.name = "titan-v",
       .source = "Lambda, RTX 2080 Ti Deep Learning Benchmarks with TensorFlow 1.12 (2019), f32; "
                 "VGG-16: u39kun, deep-learning-benchmark, PyTorch 0.3 (2017), f32, 108.8 ms for "
                 "16 images",
       .flop_per_s = 7.35e12,
       .samples_per_s = {{"resnet50", 300},
                         {"resnet152", 107},
                         {"inception-v3", 208},
                         {"inception-v4", 77},
                         {"vgg16", 16 / 108.8e-3}}},
      {.name = "v100",
       .source = "Lambda, RTX 2080 Ti Deep Learning Benchmarks with TensorFlow 1.12 (2019), f32, "
                 "SXM3 with 32 GB",
       .flop_per_s = 9.92e12,
       .samples_per_s =
           {{"resnet50", 405}, {"resnet152", 155}, {"inception-v3", 259}, {"inception-v4", 112}}},
      {.name = "h200",
       .source = "bench_step on an H200, products in tf32: ResNet-50 62.0 ms for 256 images, "
                 "AlexNet 6.22 ms for 256",
       .flop_per_s = 101e12,
       .samples_per_s = {{"resnet50", 256 / 62.0e-3}, {"alexnet", 256 / 6.22e-3}}},
      {.name = "h200-bf16",
       .source = "bench_step on an H200, bf16: ResNet-50 29.4 ms for 256 images, GoogLeNet 17.5 ms "
                 "for 256, Inception-v3 25.3 ms for 128, VGG-16 12.5 ms for 64, AlexNet 2.95 ms "
                 "for 256",
       .flop_per_s = 213e12,
       .samples_per_s = {{"resnet50", 256 / 29.4e-3},
                         {"googlenet", 256 / 17.5e-3},
                         {"inception-v3", 128 / 25.3e-3},
                         {"vgg16", 64 / 12.5e-3},
                         {"alexnet", 256 / 2.95e-3}}},
  };
  return kDevices;
}

std::vector<std::string> device_speed_names() {
  std::vector<std::string> names;
  for (const DeviceSpeed& device : device_speeds()) names.push_back(device.name);
  return names;
}

const DeviceSpeed& device_speed_named(const std::string& name) {
  const auto device = std::ranges::find(device_speeds(), name, &DeviceSpeed::name);
  if (device == device_speeds().end())
    throw UserError("there is no device {}: choose from {}", shown(name, 40),
                    fmt::join(device_speed_names(), ", "));
  return *device;
}

Profile profile_of(const NetTable& net, const DeviceSpeed& device, std::int64_t batch) {
  require(batch >= 1, "a batch of {} samples takes no time", batch);
  const auto measured = device.samples_per_s.find(net.net);
  const bool known = measured != device.samples_per_s.end();
  const double flop = net.forward_flop() + net.backward_flop();
  const double per_flop =
      static_cast<double>(batch) / (known ? measured->second * flop : device.flop_per_s);
  Profile profile{
      .net = net.net,
      .source = fmt::format(
          "{} with {} samples on {} at {}, divided by FLOP ({})", net.net, batch, device.name,
          known
              ? fmt::format("{:.5g} measured samples/s", measured->second)
              : fmt::format("{:.3g} TFLOP/s, not measured with this net", device.flop_per_s / 1e12),
          device.source),
      .batch = batch};
  for (const NetTable::Tensor& t : net.tensors)
    profile.tensors.push_back(
        {t.name, t.elements, per_flop * t.forward_flop, per_flop * t.backward_flop});
  return profile;
}

}  // namespace tandem

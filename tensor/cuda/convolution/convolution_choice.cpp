#include "tensor/cuda/convolution/convolution_choice.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>
#include <sstream>

namespace tandem::cuda {
namespace {

// One file per GPU model, driver and cuDNN version. Change the number in the name when the format
// or the selection rule changes.
std::filesystem::path file_for(int device) {
  const std::filesystem::path folder = cache_folder();
  if (folder.empty()) return {};
  cudaDeviceProp gpu{};
  check(cudaGetDeviceProperties(&gpu, device), "querying the GPU's name");
  std::string name = gpu.name;
  std::ranges::replace_if(
      name, [](char c) { return c == ' ' || c == '/'; }, '-');
  int driver = 0;
  check(cudaDriverGetVersion(&driver), "querying the driver's version");
  return folder /
         fmt::format("convolutions-2-{}-driver-{}-cudnn-{}.txt", name, driver, cudnnGetVersion());
}

std::string line_of(const CallKey& key) { return fmt::format("{}", fmt::join(key, " ")); }

}  // namespace

std::string text_of(const ConvolutionCall& call, const ConvolutionChoice& choice) {
  std::string text = fmt::format("{}: {}", text_of(call), choice.engine);
  if (choice.form.channels != call.channels())
    text += fmt::format(", {}{} channels", choice.form.folded ? "folded to " : "",
                        choice.form.channels);
  if (choice.form.fused) text += ", fused";
  if (call.direction == Direction::filter_gradient && choice.form.filter_gradient == Type::bf16)
    text += ", rounded to bf16";
  if (choice.milliseconds > 0) text += fmt::format(", {:.4f} ms", choice.milliseconds);
  return text;
}

ConvolutionChoices& ConvolutionChoices::of(int device) {
  static std::mutex mutex;
  static std::map<int, ConvolutionChoices> all;
  const std::lock_guard lock(mutex);
  return all.try_emplace(device, device).first->second;
}

ConvolutionChoices::ConvolutionChoices(int device) : file(file_for(device)) {}

std::optional<ConvolutionChoice> ConvolutionChoices::recall(const CallKey& key) const {
  const auto line = file.find(line_of(key));
  if (!line) return std::nullopt;
  std::istringstream words(*line);
  ConvolutionChoice c;
  int filter_gradient = 0, heuristic = 0;
  words >> c.form.channels >> c.form.folded >> c.form.unrolled >> c.form.fused >> filter_gradient >>
      heuristic >> c.place.index >> c.milliseconds >> std::ws;
  if (!std::getline(words, c.engine)) return std::nullopt;
  c.form.filter_gradient = static_cast<Type>(filter_gradient);
  c.place.heuristic = static_cast<cudnnBackendHeurMode_t>(heuristic);
  return c;
}

void ConvolutionChoices::keep(const CallKey& key, const ConvolutionChoice& c) {
  file.add(
      line_of(key),
      fmt::format("{} {:d} {:d} {:d} {} {} {} {} {}", c.form.channels, c.form.folded,
                  c.form.unrolled, c.form.fused, static_cast<int>(c.form.filter_gradient),
                  static_cast<int>(c.place.heuristic), c.place.index, c.milliseconds, c.engine));
}

}  // namespace tandem::cuda

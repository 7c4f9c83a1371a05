#include "train/prediction.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "data/image_files.h"
#include "data/loader.h"
#include "train/input.h"
#include "train/replica.h"

namespace tandem {
namespace {

// The most probable classes of one image.
std::vector<Guess> best_of(std::span<const float> logits, const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 5;
  const float largest = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(double{logit} - largest);
  std::vector<std::size_t> order(logits.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](std::size_t i) { return logits[i]; });
  std::vector<Guess> guesses;
  for (const std::size_t i : order) {
    if (guesses.size() == kMost) break;
    guesses.push_back({.index = static_cast<std::int64_t>(i),
                       .name = i < names.size() ? names[i] : fmt::format("{}", i),
                       .probability = std::exp(double{logits[i]} - largest) / sum});
  }
  return guesses;
}

}  // namespace

void predict(const Task& task, const TrainOptions& o) {
  const DataSplit data = task.data();
  Replica replica(task, data, o, make_device(o, 0));
  Input input(replica.device(), activation_dtype(o.precision), data.normalisation);
  Loader loader(std::make_shared<ImageFiles>(o.predict, data), data.normalisation,
                host_of(replica.device()),
                {.batch = 1, .bytes = !replica.device().is_cpu(), .threads = data.loader_threads});
  Tape tape;
  for (const std::string& file : o.predict) {
    const Batch batch = input.bring(loader.next());
    tape.begin(Tape::Mode::inference);
    const Tensor logits = replica.model().forward(tape, Var{batch.images}).value;
    const auto guesses = best_of(logits.to_host<float>(), data.classes);
    const std::string line = o.json ? json_of(file, guesses) : text_of(file, guesses);
    if (std::fputs((line + "\n").c_str(), stdout) < 0 || std::fflush(stdout) != 0)
      throw SystemError("cannot write to standard output: {}", std::strerror(errno));
  }
}

std::string text_of(const std::string& file, const std::vector<Guess>& guesses) {
  std::string text = file + ":";
  for (const Guess& guess : guesses)
    text += fmt::format("{} {} {:.1f}%", &guess == &guesses.front() ? "" : ",", guess.name,
                        100 * guess.probability);
  return text;
}

std::string json_of(const std::string& file, const std::vector<Guess>& guesses) {
  nlohmann::ordered_json classes = nlohmann::ordered_json::array();
  for (const Guess& guess : guesses)
    classes.push_back(
        {{"class", guess.name}, {"index", guess.index}, {"probability", guess.probability}});
  const nlohmann::ordered_json json = {{"file", file}, {"classes", classes}};
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace tandem

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tensor/error.h"
#include "train/files.h"
#include "train/speedup/child.h"
#include "train/speedup/excerpt.h"
#include "train/speedup/plan.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::int64_t kTimelineIterations = 12;  // of which two are shown, when all is warm

// Where programs leave their files; gone at the end.
class Scratch {
 public:
  Scratch()
      : folder_(fs::temp_directory_path() / ("tandem-speedup-" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::string operator/(const char* name) const { return folder_ / name; }

 private:
  fs::path folder_;
};

// What --summary says a worker's iteration was spent on: its two threads side by side, of which the
// compute thread waits for the other one.
Breakdown breakdown_of(const Json& ms) {
  const auto part = [&](const char* name) { return ms.at(name).get<double>(); };
  Breakdown b;
  b.compute = part("data") + part("forward") + part("backward") + part("update");
  const double communication = part("compress") + part("communicate");
  const double waited_for = std::min(part("wait"), communication);
  b.compress = std::min(part("compress"), waited_for);
  b.exposed = waited_for - b.compress;
  b.hidden = communication - waited_for;
  b.wait = part("wait") - waited_for;
  return b;
}

std::vector<Json> lines_of(const std::string& metrics, const char* with) {
  std::vector<Json> entries;
  std::istringstream lines(metrics);
  for (std::string line; std::getline(lines, line);)
    if (Json entry = Json::parse(line); entry.contains(with)) entries.push_back(std::move(entry));
  return entries;
}

// Accuracies of a training that was tested at times that do not count.
std::vector<CurvePoint> tests_of(const std::string& metrics) {
  std::vector<CurvePoint> tests;
  for (const Json& entry : lines_of(metrics, "test_accuracy"))
    tests.push_back({.iteration = entry["iteration"], .accuracy = entry["test_accuracy"]});
  return tests;
}

// When a training that was not tested came to these iterations.
void set_times(std::vector<CurvePoint>& curve, const std::string& metrics) {
  double seconds = 0;
  auto point = curve.begin();
  for (const Json& entry : lines_of(metrics, "iteration_ms")) {
    seconds += entry["iteration_ms"].get<double>() / 1e3;
    if (point != curve.end() && point->iteration == entry["iteration"]) point++->wall_s = seconds;
  }
}

using Words = std::vector<std::string>;

Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// A timed training.
struct Timed {
  Json summary;
  std::string metrics;
  double median_ms() const { return summary.at("iteration_ms").at("median"); }
};

// What a training that was tested says of the weights.
void take_weights(const Json& summary, Cell& cell) {
  cell.test_accuracy = summary.at("test_accuracy");
  cell.train_loss = summary.at("train_loss");
  cell.weights_hash = summary.at("weights_hash");
  cell.warmup = summary.at("warmup");
}

// The median repeat speaks for all.
void take_times(const std::vector<Timed>& repeats, Results& results, Cell& cell) {
  for (const Timed& repeat : repeats) cell.repeats_ms.push_back(repeat.median_ms());
  const auto& [summary, metrics] =
      *std::ranges::find(repeats, cell.iteration_ms(), &Timed::median_ms);
  const Json& ms = summary.at("iteration_ms");
  results.data = summary.at("data");
  results.parameters = summary.at("parameters");
  if (cell.curve.empty()) {  // the test at the end is the only one
    take_weights(summary, cell);
    cell.curve = {{.iteration = results.iterations, .accuracy = cell.test_accuracy}};
  }
  set_times(cell.curve, metrics);
  if (!ms.at("predicted").is_null()) cell.predicted_ms = ms.at("predicted").get<double>();
  cell.breakdown = breakdown_of(summary.at("breakdown_ms"));
  cell.bytes_per_iteration = 0;
  for (const Json& rank : summary.at("ranks"))
    cell.bytes_per_iteration += rank.at("bytes_sent").get<double>();
}

// Whether two cells come to the same weights. Links never change the answer.
bool same_weights(const Plan& plan, const Cell& a, const Cell& b) {
  const bool synchronous = a.algo != "pipe-sgd" && b.algo != "pipe-sgd";
  return a.workers == b.workers && a.compress == b.compress &&
         (a.algo == b.algo || (synchronous && plan.deterministic()));
}

// A pipeline that is open from the first iteration on: what is timed is the algorithm.
Words without_warmup(const Cell& cell) {
  if (cell.algo != "pipe-sgd") return {};
  return {"--warmup-iterations", "0", "--warmup-epochs", "0"};
}

}  // namespace

void warm_up(const Plan& plan, const Cell& cell) {
  try {
    run_program(plan.command(cell) + without_warmup(cell) + Words{"--iterations", "5"});
  } catch (const SystemError&) {  // the cell itself will tell
  }
}

void run_cell(const Plan& plan, Results& results, Cell& cell,
              const std::function<void(const std::string&)>& running) {
  const Scratch scratch;
  const std::string summary = scratch / "summary.json", metrics = scratch / "metrics.jsonl",
                    trace = scratch / "trace.json";
  const auto length = [](std::int64_t iterations) {
    return Words{"--iterations", std::to_string(iterations)};
  };
  try {
    // A test in the middle would give a pipeline time to drain. But the same seed gives the same
    // weights every time and over any link (on a GPU, nearly the same): so they are tested in a
    // training of their own, without a link, once for all links. The test at the end is in the way
    // of nobody.
    const auto tested = std::ranges::find_if(results.cells, [&](const Cell& other) {
      return same_weights(plan, other, cell) && other.done();
    });
    const bool tests = plan.tests > 1 || results.extrapolates();
    if (tests && tested != results.cells.end()) {
      cell.curve = tested->curve;
      cell.test_accuracy = tested->test_accuracy;
      cell.train_loss = tested->train_loss;
      cell.weights_hash = tested->weights_hash;
      cell.warmup = tested->warmup;
    } else if (tests) {
      running("tests");
      Cell unlimited = cell;
      unlimited.link = "none";
      const std::int64_t every = std::max<std::int64_t>(1, plan.iterations / plan.tests);
      run_program(
          plan.command(unlimited) + length(plan.iterations) +
          Words{"--metrics", metrics, "--summary", summary, "--test-every", std::to_string(every)});
      cell.curve = tests_of(read_file(metrics));
      take_weights(Json::parse(read_file(summary)), cell);
    }
    std::vector<Timed> repeats;
    for (std::int64_t r = 1; r <= plan.repeats; ++r) {
      running(fmt::format("training {} of {}", r, plan.repeats));
      run_program(plan.command(cell) + length(results.timed) +
                  (results.extrapolates() ? without_warmup(cell) : Words{}) +
                  Words{"--summary", summary, "--metrics", metrics});
      repeats.push_back({Json::parse(read_file(summary)), read_file(metrics)});
    }
    take_times(repeats, results, cell);
    results.extrapolate();
    if (plan.wants_timeline(cell)) {
      running("timeline");
      run_program(plan.command(cell) + length(kTimelineIterations) + without_warmup(cell) +
                  Words{"--trace", trace});
      cell.timeline = excerpt(read_file(trace), kTimelineIterations, cell.workers);
    }
  } catch (const std::exception& e) {
    cell.failure = e.what();
  }
}

}  // namespace tandem

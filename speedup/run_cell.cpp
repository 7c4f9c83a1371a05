#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>

#include "base/error.h"
#include "base/statistics.h"
#include "dist/codecs/codec_table.h"
#include "dist/strategies.h"
#include "speedup/child.h"
#include "speedup/excerpt.h"
#include "speedup/load.h"
#include "speedup/plan.h"
#include "train/files.h"
#include "train/option_table.h"

namespace tandem {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kTimelineIterations = 12;  // of which two are shown

// What a worker's mean iteration was spent on. Its compute thread and its communication thread run
// in parallel, and the compute thread waits for the other.
Breakdown breakdown_of(const Json& summary) {
  const Json& ms = summary.at("breakdown_ms");
  const double mean = summary.at("iteration_ms").at("mean");
  const auto part = [&](const char* name) { return ms.at(name).get<double>(); };
  Breakdown b;
  b.compute = part("data") + part("forward") + part("backward") + part("update");
  const double communication = part("compress") + part("sum") + part("communicate");
  const double waited_for = std::min(part("wait"), communication);
  b.compress = std::min(part("compress"), waited_for);
  b.exposed = waited_for - b.compress;
  b.hidden = communication - waited_for;
  // A GPU's clock can run slightly ahead of the host's.
  const double ahead = std::max(1.0, b.iteration() / mean);
  for (double* ms_of : {&b.compute, &b.compress, &b.exposed}) *ms_of /= ahead;
  b.other = std::max(0.0, mean - b.iteration());
  return b;
}

std::vector<Json> lines_of(const std::string& metrics, const char* with) {
  std::vector<Json> entries;
  std::istringstream lines(metrics);
  for (std::string line; std::getline(lines, line);)
    if (Json entry = Json::parse(line); entry.contains(with)) entries.push_back(std::move(entry));
  return entries;
}

// The accuracies of a run with tests, without times.
std::vector<CurvePoint> tests_of(const std::string& metrics) {
  std::vector<CurvePoint> tests;
  for (const Json& entry : lines_of(metrics, "test_accuracy"))
    tests.push_back({.iteration = entry["iteration"],
                     .accuracy = entry["test_accuracy"],
                     .objective = entry.contains("objective")
                                      ? std::optional(entry["objective"].get<double>())
                                      : std::nullopt});
  return tests;
}

// Milliseconds of every iteration, in order.
std::vector<double> iterations_of(const std::string& metrics) {
  std::vector<double> ms;
  for (const Json& entry : lines_of(metrics, "iteration_ms")) ms.push_back(entry["iteration_ms"]);
  return ms;
}

using Words = std::vector<std::string>;

Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// A timed run.
struct Timed {
  Json summary;
  std::vector<double> iterations_ms;
  std::optional<Load> load;
};

// The input of a run's prediction.
ModelInput model_of(const Json& summary) {
  const Json &o = summary.at("options"), &n = summary.at("network"), &m = summary.at("model");
  const std::string algo = o.at("algo");
  StrategyOptions options;
  for (const StrategyOption& option : strategy_named(algo).options) {
    const Json& value = o.at(summary_key(option.name));
    options[option.name] =
        option.value_of(value.is_string() ? value.get<std::string>() : value.dump());
  }
  return {
      .algo = algo,
      .options = options,
      .workers = o.at("workers"),
      .compute = {.update = m.at("update_s"),
                  .forward = m.at("forward_s"),
                  .backward = m.at("backward_s")},
      .network = {.alpha = n.at("alpha_s"),
                  .beta = n.at("beta_s_per_byte"),
                  .gamma = n.at("gamma_s_per_byte"),
                  .sync = n.at("sync_s")},
      .gradient_bytes = m.at("gradient_bytes"),
      .wire_bytes = m.at("wire_bytes"),
      .ranks_per_node = o.at("ranks_per_node").is_null() ? 1 : o.at("ranks_per_node").get<int>(),
      .closed = m.at("closed")};
}

// The mean of each of these members. All other members are taken from the first element.
template <class T>
T mean_of(const std::vector<T>& all, std::initializer_list<double T::*> members) {
  T result = all.front();
  for (double T::*member : members) {
    std::vector<double> values;
    for (const T& each : all) values.push_back(each.*member);
    result.*member = mean(values);
  }
  return result;
}

ModelInput mean_of(const std::vector<ModelInput>& models) {
  std::vector<ComputeCost> compute;
  std::vector<NetworkCost> network;
  for (const ModelInput& m : models) {
    compute.push_back(m.compute);
    network.push_back(m.network);
  }
  ModelInput result = models.front();
  result.compute =
      mean_of(compute, {&ComputeCost::update, &ComputeCost::forward, &ComputeCost::backward});
  result.network = mean_of(
      network, {&NetworkCost::alpha, &NetworkCost::beta, &NetworkCost::gamma, &NetworkCost::sync});
  return result;
}

// Stores the results that depend only on the weights.
void take_weights(const Json& summary, Cell& cell) {
  cell.test_accuracy = summary.at("test_accuracy");
  cell.train_loss = summary.at("train_loss");
  cell.weights_hash = summary.at("weights_hash");
  cell.warmup = summary.at("warmup");
}

// Sets when the iterations of a curve were done, as a mean over the repeats. The last weights need
// longer than the first worker's iterations: a pipeline drains, and slower workers finish.
void set_times(std::vector<CurvePoint>& curve, const std::vector<Timed>& repeats) {
  for (CurvePoint& point : curve) {
    std::vector<double> seconds;
    for (const Timed& repeat : repeats) {
      const auto end = repeat.iterations_ms.begin() + point.iteration;
      seconds.push_back(end == repeat.iterations_ms.end()
                            ? repeat.summary.at("wall_s").get<double>()
                            : std::reduce(repeat.iterations_ms.begin(), end) / 1e3);
    }
    point.wall_s = mean(seconds);
  }
}

// All repeats count equally: every number is the mean over the repeats.
void take_times(const std::vector<Timed>& repeats, Results& results, Cell& cell) {
  std::vector<double> warm;  // the iterations of all repeats, without cold ones
  std::vector<Breakdown> breakdowns;
  std::vector<ModelInput> models;
  std::vector<double> predicted;
  for (const auto& [summary, iterations, load] : repeats) {
    const Json& ms = summary.at("iteration_ms");
    cell.repeats_ms.push_back(ms.at("mean"));
    warm.insert(warm.end(), iterations.end() - ms.at("timed").get<std::int64_t>(),
                iterations.end());
    breakdowns.push_back(breakdown_of(summary));
    if (!ms.at("predicted").is_null()) {
      predicted.push_back(ms.at("predicted"));
      models.push_back(model_of(summary));
    }
    if (load) cell.loads.push_back(*load);
  }
  cell.median_ms = median(warm);
  cell.breakdown =
      mean_of(breakdowns, {&Breakdown::compute, &Breakdown::compress, &Breakdown::exposed,
                           &Breakdown::other, &Breakdown::hidden});
  if (!models.empty()) {
    cell.predicted_ms = mean(predicted);
    cell.model = mean_of(models);
  }
  const Json& summary = repeats.back().summary;
  results.data = summary.at("data");
  results.net = summary.at("net");
  results.parameters = summary.at("parameters");
  if (cell.curve.empty()) {  // the only test is the one at the end
    take_weights(summary, cell);
    const Json& objective = summary.at("objective");
    cell.curve = {
        {.iteration = results.iterations,
         .accuracy = cell.test_accuracy,
         .objective = objective.is_null() ? std::nullopt : std::optional(objective.get<double>())}};
  }
  if (!results.extrapolates()) set_times(cell.curve, repeats);
  cell.bytes_per_iteration = 0;
  for (const Json& rank : summary.at("ranks"))
    cell.bytes_per_iteration += rank.at("bytes_sent").get<double>();
}

// Whether two cells end with the same weights. Links do not matter for this, unless workers do not
// wait for each other.
bool same_weights(const Comparison& plan, const Cell& a, const Cell& b) {
  if (strategy_named(a.algo).asynchronous()) return false;
  const auto is_synchronous = [](const Cell& cell) {
    return strategy_named(cell.algo).family == Family::synchronous;
  };
  const auto codec = parse_compression(a.compress);
  const bool cut_alike = !codec || codec->info->by_block;  // or it does not matter
  const bool synchronous = is_synchronous(a) && is_synchronous(b) && cut_alike;
  return a.workers == b.workers && a.compress == b.compress &&
         (a.algo == b.algo || (synchronous && plan.deterministic()));
}

}  // namespace

void warm_up(const Comparison& plan, const Cell& cell) {
  try {
    run_program(plan.command(cell) + without_warmup(cell) + Words{"--iterations", "5"});
  } catch (const SystemError&) {  // the cell's own run will report it
  }
}

void run_cell(const Comparison& plan, Results& results, Cell& cell,
              const std::function<void(const std::string&)>& running) {
  try {
    const Scratch scratch;
    const std::string summary = scratch / "summary.json", metrics = scratch / "metrics.jsonl",
                      trace = scratch / "trace.json";
    const auto length = [](std::int64_t iterations) {
      return Words{"--iterations", std::to_string(iterations)};
    };
    // Timed runs are tested only at the end, because each test stops all workers. The same seed
    // gives the same weights every time and over any link (on a GPU, nearly the same). So the
    // weights are tested in a separate run without a link, once for all links. If workers do not
    // wait for each other, the link decides how old gradients are: the separate run has it too.
    const auto tested = std::ranges::find_if(results.cells, [&](const Cell& other) {
      return same_weights(plan, other, cell) && other.done();
    });
    const bool tests = cell.curve.empty() && (plan.tests > 1 || results.extrapolates());
    if (tests && tested != results.cells.end()) {
      cell.curve = tested->curve;
      cell.test_accuracy = tested->test_accuracy;
      cell.train_loss = tested->train_loss;
      cell.weights_hash = tested->weights_hash;
      cell.warmup = tested->warmup;
    } else if (tests) {
      running("tests");
      Cell separate = cell;
      separate.link = link_of_tests(cell);
      const std::int64_t every = std::max<std::int64_t>(1, plan.iterations / plan.tests);
      run_program(
          plan.command(separate) + length(plan.iterations) +
          Words{"--metrics", metrics, "--summary", summary, "--test-every", std::to_string(every)});
      cell.curve = tests_of(read_file(metrics));
      take_weights(Json::parse(read_file(summary)), cell);
    }
    std::vector<Timed> repeats;
    for (std::int64_t r = 1; r <= plan.repeats; ++r) {
      running(fmt::format("run {} of {}", r, plan.repeats));
      const LoadMeter meter;
      run_program(plan.command(cell) + length(results.timed) +
                  (results.extrapolates() ? without_warmup(cell) : Words{}) +
                  Words{"--test-every", std::to_string(results.timed), "--summary", summary,
                        "--metrics", metrics});
      repeats.push_back({.summary = Json::parse(read_file(summary)),
                         .iterations_ms = iterations_of(read_file(metrics)),
                         .load = meter.since()});
    }
    take_times(repeats, results, cell);
    results.extrapolate();
    running("timeline");
    run_program(plan.command(cell) + length(kTimelineIterations) + without_warmup(cell) +
                Words{"--trace", trace});
    cell.timeline =
        excerpt(read_file(trace), kTimelineIterations, cell.workers, cell.iteration_ms());
  } catch (const std::exception& e) {
    cell.failure = e.what();
  }
}

}  // namespace tandem

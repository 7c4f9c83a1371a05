#include "train/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "base/error.h"
#include "base/statistics.h"
#include "dist/codecs/codec_table.h"
#include "dist/compress/compressor.h"
#include "dist/strategies.h"
#include "train/option_table.h"
#include "train/reporting.h"
#include "train/version.h"

namespace tandem {
namespace {

using OrderedJson = nlohmann::ordered_json;

const auto kStart = Clock::now();

double per_iteration_ms(const Summary& s, double seconds) {
  return s.timed() ? 1e3 * seconds / static_cast<double>(s.timed()) : 0;
}

// The kinds of spans that each kind of thread has.
constexpr SpanKind kComputeKinds[] = {SpanKind::data, SpanKind::forward, SpanKind::backward,
                                      SpanKind::update, SpanKind::wait};
constexpr SpanKind kCommunicationKinds[] = {SpanKind::compress, SpanKind::sum,
                                            SpanKind::communicate};

const char* name_of(SpanKind kind) { return kSpanNames[static_cast<std::size_t>(kind)]; }

std::vector<RankReport> workers_of(const Summary& s) {
  std::vector<RankReport> workers;
  for (const RankReport& r : s.ranks)
    if (!r.server) workers.push_back(r);
  return workers;
}

RankReport mean_of(const std::vector<RankReport>& workers) {
  RankReport mean;
  const auto count = static_cast<double>(workers.size());
  for (const RankReport& w : workers) {
    for (std::size_t kind = 0; kind < kSpanNames.size(); ++kind) {
      mean.compute_s[kind] += w.compute_s[kind] / count;
      mean.communication_s[kind] += w.communication_s[kind] / count;
    }
    mean.bytes_sent += w.bytes_sent / std::ssize(workers);
  }
  return mean;
}

const RankReport& slowest(const std::vector<RankReport>& workers) {
  return *std::max_element(workers.begin(), workers.end(), [](const auto& a, const auto& b) {
    return a.computing() < b.computing();
  });
}

// Bytes that a worker sends per iteration.
double bytes_per_iteration(const Summary& s, const RankReport& r) {
  return s.iterations ? static_cast<double>(r.bytes_sent) / static_cast<double>(s.iterations) : 0;
}

// Milliseconds per iteration by kind of span.
OrderedJson breakdown_json(const Summary& s, const RankReport& r) {
  OrderedJson json;
  for (const SpanKind kind : kComputeKinds)
    if (!r.server) json[name_of(kind)] = per_iteration_ms(s, r.compute(kind));
  if (r.server) json["update"] = per_iteration_ms(s, r.communication(SpanKind::update));
  for (const SpanKind kind : kCommunicationKinds)
    json[name_of(kind)] = per_iteration_ms(s, r.communication(kind));
  return json;
}

OrderedJson ranks_json(const Summary& s) {
  OrderedJson ranks = OrderedJson::array();
  for (const RankReport& r : s.ranks)
    ranks.push_back({{"rank", r.rank},
                     {"role", r.server ? "server" : "worker"},
                     {"breakdown_ms", breakdown_json(s, r)},
                     {"bytes_sent", bytes_per_iteration(s, r)}});
  return ranks;
}

// The inputs of the prediction besides options and network.
OrderedJson model_json(const ModelInput& m) {
  return {{"update_s", m.compute.update},     {"forward_s", m.compute.forward},
          {"backward_s", m.compute.backward}, {"gradient_bytes", m.gradient_bytes},
          {"wire_bytes", m.wire_bytes},       {"closed", m.closed}};
}

// Enough of them to see what is wrong.
std::vector<std::string> first_skipped(const Summary& s) {
  constexpr std::size_t kNamed = 5;
  std::vector<std::string> first(s.skipped.begin(), s.skipped.end());
  first.resize(std::min(first.size(), kNamed));
  return first;
}

OrderedJson options_json(const TrainOptions& o) {
  OrderedJson json;
  for (const OptionRow& row : option_table())
    std::visit(
        [&](auto member) {
          OrderedJson& value = json[summary_key(row.name)];
          if (!row.given(o))
            value = nullptr;
          else if constexpr (Named<std::remove_cvref_t<decltype(o.*member)>>)
            value = to_string(o.*member);
          else
            value = o.*member;
        },
        row.member);
  for (const StrategyOption& option : strategy_options())
    if (const std::int64_t value = option_value(o.algo_options, option.name); option.decimal())
      json[summary_key(option.name)] = option.number(value);
    else if (option.choices.empty())
      json[summary_key(option.name)] = value;
    else
      json[summary_key(option.name)] = option.text(value);
  if (o.device == DeviceKind::cpu) {
    json["graphs"] = nullptr;
    json["deterministic"] = true;
  }
  for (const auto& [key, own] : o.own)
    std::visit([&entry = json[key]](const auto& value) { entry = value; }, own.value);
  return json;
}

}  // namespace

double seconds_since_start(Clock::time_point now) { return seconds_between(kStart, now); }

double Summary::samples_per_s() const {
  return mean_ms() > 0 ? 1e3 * static_cast<double>(options.batch) / mean_ms() : 0;
}

bool Summary::is_timed(std::int64_t t) const {
  return std::ranges::none_of(starts, [&](std::int64_t s) { return s < t && t <= s + cold; });
}

std::int64_t Summary::timed() const { return std::ssize(timed_ms()); }

std::vector<double> Summary::timed_ms() const {
  std::vector<double> timed;
  for (std::size_t i = 0; i < iteration_ms.size(); ++i)
    if (is_timed(static_cast<std::int64_t>(i) + 1)) timed.push_back(iteration_ms[i]);
  return timed;
}

void Summary::visit(State& state) {
  std::vector<double> started(starts.begin(), starts.end());
  std::vector<double> tested_objective;
  auto was_tested = static_cast<std::int64_t>(tested);
  if (objective) tested_objective.push_back(*objective);
  state("iterations at each start", started);
  state("wall seconds", wall_s);
  state("milliseconds of each iteration", iteration_ms);
  state("tested", was_tested);
  state("train loss", train_loss);
  state("test accuracy", test_accuracy);
  state("objective", tested_objective);
  constexpr double kMost = 1e15;
  for (const double start : started)
    if (!(start >= 0 && start <= kMost))
      throw UserError("the saved state says that a run started after iteration {}", start);
  starts.assign(started.begin(), started.end());
  if (!tested_objective.empty()) objective = tested_objective.front();
  tested = was_tested != 0;
}

// J. T. Daly, A higher order estimate of the optimum checkpoint interval for restart dumps, 2006.
std::optional<double> Summary::best_checkpoint_s() const {
  if (options.mtbf == 0 || checkpoints.checkpoints == 0) return {};
  const double cost = checkpoint_pause_s / static_cast<double>(checkpoints.checkpoints);
  const double m = options.mtbf;
  if (cost >= 2 * m) return m;
  const double share = cost / (2 * m);
  return std::sqrt(2 * cost * m) * (1 + std::sqrt(share) / 3 + share / 9) - cost;
}

double Summary::mean_ms() const { return mean(timed_ms()); }

ModelInput Summary::model() const {
  const auto workers = workers_of(*this);
  ModelInput m{.algo = options.algo,
               .options = options.algo_options,
               .workers = options.workers,
               .network = network,
               .gradient_bytes = 4.0 * static_cast<double>(gradient_count),
               .ranks_per_node = std::max(1, options.ranks_per_node)};
  m.wire_bytes = static_cast<double>(
      make_compressor(compressor_in_ring(options.compress))->bytes(gradient_count));
  if (workers.empty() || timed() == 0) return m;
  const RankReport& w = slowest(workers);
  const auto per_iteration = [&](double s) { return s / static_cast<double>(timed()); };
  m.compute = {.update = per_iteration(w.compute(SpanKind::update)),
               .forward = per_iteration(w.compute(SpanKind::data) + w.compute(SpanKind::forward)),
               .backward = per_iteration(w.compute(SpanKind::backward))};
  std::int64_t closed = 0;  // timed iterations before the pipeline opens
  for (std::int64_t t = 1; t <= std::min(warmup, iterations); ++t) closed += is_timed(t) ? 1 : 0;
  m.closed = per_iteration(static_cast<double>(closed));
  return m;
}

std::optional<double> Summary::predicted_s() const {
  if (iterations == 0) return {};
  if (parse_compression(options.compress)) return plan.predicted_s;  // the model knows no codecs
  const auto by_model = predicted_iteration(model());
  return by_model ? by_model : plan.predicted_s;
}

namespace {

// The messages in the order of sending.
OrderedJson plan_json(const Summary& s) {
  if (s.plan.elements.empty()) return nullptr;
  const auto compressor = make_compressor(compressor_in_ring(s.options.compress));
  std::vector<std::size_t> bytes;
  for (const std::int64_t elements : s.plan.elements) bytes.push_back(compressor->bytes(elements));
  const bool encoded = parse_compression(s.options.compress).has_value();  // to any length
  return {
      {"messages", bytes.size()},
      {"bytes", encoded ? OrderedJson() : OrderedJson(bytes)},
      {"predicted_ms", s.plan.predicted_s ? OrderedJson(1e3 * *s.plan.predicted_s) : OrderedJson()},
      {"first_iteration", s.plan.first_iteration}};
}

// Means per checkpoint of this run, since it was last started; the file is rank 0's.
OrderedJson checkpoints_json(const Summary& s) {
  if (s.options.checkpoint.empty()) return nullptr;
  const auto count = static_cast<double>(s.checkpoints.checkpoints);
  const auto mean = [&](double total) {
    return count > 0 ? OrderedJson(total / count) : OrderedJson();
  };
  const auto best = s.best_checkpoint_s();
  return {{"count", s.checkpoints.checkpoints},
          {"pause_ms", mean(1e3 * s.checkpoint_pause_s)},
          {"write_ms", mean(1e3 * s.checkpoints.write_s)},
          {"bytes", mean(s.checkpoints.bytes)},
          {"best_seconds", best ? OrderedJson(*best) : OrderedJson()}};
}

}  // namespace

std::string plan_to_json(const Summary& s) { return plan_json(s).dump(); }

std::string to_json(const Summary& s) {
  const auto workers = workers_of(s);
  const OrderedJson json = {
      {"app", s.app},
      {"version", tandem_version()},
      {"commit", tandem_commit().empty() ? OrderedJson() : OrderedJson(tandem_commit())},
      {"options", options_json(s.options)},
      {"data", s.data},
      {"net", s.net},
      {"parameters", s.parameters},
      {"iterations", s.iterations},
      {"warmup", s.warmup},
      {"wall_s", s.wall_s},
      {"iteration_ms",
       {{"timed", s.timed()},
        {"mean", s.mean_ms()},
        {"median", median(s.timed_ms())},
        {"p95", quantile(s.timed_ms(), 0.95)},
        {"predicted", s.predicted_s() ? OrderedJson(1e3 * *s.predicted_s()) : nullptr}}},
      {"breakdown_ms", breakdown_json(s, mean_of(workers))},
      {"ranks", ranks_json(s)},
      {"slowest_worker", workers.empty() ? OrderedJson() : OrderedJson(slowest(workers).rank)},
      {"network",
       {{"alpha_s", s.network.alpha},
        {"beta_s_per_byte", s.network.beta},
        {"gamma_s_per_byte", s.network.gamma},
        {"sync_s", s.network.sync}}},
      {"model", model_json(s.model())},
      {"plan", plan_json(s)},
      {"train_loss", s.tested ? OrderedJson(s.train_loss) : OrderedJson()},
      {"objective", s.objective ? OrderedJson(*s.objective) : OrderedJson(nullptr)},
      {"test_accuracy", s.tested ? OrderedJson(s.test_accuracy) : OrderedJson()},
      {"samples_per_s", s.samples_per_s()},
      {"starts", s.starts},
      {"startup_s", s.startup_s},
      {"interrupted", s.stopped_by ? OrderedJson(::strsignal(s.stopped_by)) : OrderedJson()},
      {"checkpoints", checkpoints_json(s)},
      {"skipped_images", {{"count", s.skipped.size()}, {"first", first_skipped(s)}}},
      {"peak_memory_mb", peak_memory_mb()},
      {"weights_hash", s.weights_hash}};
  // JSON must be UTF-8, but paths need not be.
  return json.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

namespace {

// One line per rank shows stragglers.
std::string ranks_text(const Summary& s) {
  std::string text = "\n  ms per iteration  ";
  for (const SpanKind kind : kComputeKinds) text += fmt::format(" {:>8}", name_of(kind));
  text += " |";
  for (const SpanKind kind : kCommunicationKinds) text += fmt::format(" {:>11}", name_of(kind));
  text += "   MB sent\n";
  const auto line = [&](const std::string& name, const RankReport& r) {
    text += fmt::format("  {:<18}", name);
    for (const SpanKind kind : kComputeKinds) {
      const bool on_server = kind == SpanKind::update;  // on its only thread
      const double seconds = r.server ? r.communication(kind) : r.compute(kind);
      text += r.server && !on_server ? fmt::format(" {:>8}", "")
                                     : fmt::format(" {:>8.2f}", per_iteration_ms(s, seconds));
    }
    text += " |";
    for (const SpanKind kind : kCommunicationKinds)
      text += fmt::format(" {:>11.2f}", per_iteration_ms(s, r.communication(kind)));
    text += fmt::format(" {:>9.3f}\n", bytes_per_iteration(s, r) / 1e6);
  };
  for (const RankReport& r : s.ranks)
    line(fmt::format("{} {}", r.server ? "server, rank" : "worker", r.rank), r);
  if (const auto workers = workers_of(s); workers.size() > 1) {
    line("mean of workers", mean_of(workers));
    text += fmt::format("  slowest worker: {} (computes for {:.2f} ms; mean {:.2f} ms)\n",
                        slowest(workers).rank, per_iteration_ms(s, slowest(workers).computing()),
                        per_iteration_ms(s, mean_of(workers).computing()));
  }
  return text;
}

}  // namespace

std::string to_text(const Summary& s) {
  std::string text;
  if (s.iterations > 0) {
    text += fmt::format("\n{} iterations in {:.1f} s, peak memory {:.0f} MB{}\n", s.iterations,
                        s.wall_s, peak_memory_mb(),
                        s.cold > 0 ? fmt::format("; without the first {}:", s.cold) : "");
    text += fmt::format(
        "  iteration      {:.2f} ms (mean), {:.2f} ms (median), {:.2f} ms (95%), {:.0f} "
        "samples/s\n",
        s.mean_ms(), median(s.timed_ms()), quantile(s.timed_ms(), 0.95), s.samples_per_s());
    const StrategyInfo* algo = find_strategy(s.options.algo);
    if (algo && !algo->distributed()) {
      text += "  of which     ";
      for (const SpanKind kind : kComputeKinds)
        if (kind != SpanKind::wait)
          text += fmt::format("{} {} {:.2f} ms", kind == SpanKind::data ? "" : ",", name_of(kind),
                              per_iteration_ms(s, s.ranks[0].compute(kind)));
      text += "\n";
    } else {
      const auto predicted = s.predicted_s();
      text += predicted ? fmt::format("  predicted      {:.2f} ms, {:+.1f}%", 1e3 * *predicted,
                                      100 * (1e3 * *predicted / s.mean_ms() - 1))
                        : "  predicted      –";
      if (predicted && s.ranks.size() > 1)
        text += fmt::format(
            " (latency {:.0f} µs, {:.1f} MB/s, sums {:.0f} MB/s, synchronisation {:.0f} µs)",
            1e6 * s.network.alpha, 1e-6 / s.network.beta, 1e-6 / s.network.gamma,
            1e6 * s.network.sync);
      text += "\n";
      text += ranks_text(s);
    }
    if (s.tested) text += fmt::format("\n  train loss     {:.4f}", s.train_loss);
  }
  if (s.checkpoints.checkpoints > 0) {
    const auto mean = [&](double total) {
      return total / static_cast<double>(s.checkpoints.checkpoints);
    };
    text += fmt::format("\n  checkpoints    {}, each a pause of {:.1f} ms; written in {:.1f} ms",
                        s.checkpoints.checkpoints, 1e3 * mean(s.checkpoint_pause_s),
                        1e3 * mean(s.checkpoints.write_s));
    if (const auto best = s.best_checkpoint_s())
      text += fmt::format("\n                 best with this --mtbf: --checkpoint-seconds {:.0f}",
                          std::max(1.0, *best));
  }
  if (s.objective) text += fmt::format("\n  objective      {:.6f}", *s.objective);
  text += fmt::format("\n  test accuracy  {}\n  weights hash   {}\n",
                      s.tested ? fmt::format("{:.2f}%", 100 * s.test_accuracy) : "not tested",
                      s.weights_hash);
  if (!s.skipped.empty()) {
    text += fmt::format("\n  {} broken {} skipped:\n", s.skipped.size(),
                        s.skipped.size() == 1 ? "image was" : "images were");
    const auto first = first_skipped(s);
    for (const std::string& what : first) text += fmt::format("    {}\n", what);
    if (first.size() < s.skipped.size())
      text += fmt::format("    and {} more\n", s.skipped.size() - first.size());
  }
  return text;
}

}  // namespace tandem

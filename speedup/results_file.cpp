#include "speedup/results_file.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <limits>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "data/files.h"
#include "dist/codecs/codec_table.h"
#include "dist/strategies.h"
#include "dist/transport/link_speed.h"
#include "train/files.h"
#include "train/json_input.h"
#include "train/option_table.h"

namespace tandem {
namespace {

using OrderedJson = nlohmann::ordered_json;  // what is written
using Parsed = nlohmann::json;

constexpr int kFormat = 2;
constexpr int kMostWorkers = 1 << 16;
constexpr std::uint64_t kMostBytes = 100'000'000;

// Puts each array of plain values on one line.
std::string with_flat_arrays(const std::string& json) {
  constexpr auto kNone = std::string::npos;
  std::string text;
  std::size_t array = kNone;  // where the innermost one begins
  bool quoted = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    text += c;
    if (quoted) {
      if (c == '\\') text += json[++i];
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[') {
      array = text.size();
    } else if (c == '{') {
      array = kNone;
    } else if (c == ']' && array != kNone) {
      std::string flat;
      for (std::size_t at = array; at < text.size(); ++at) {
        if (text[at] != '\n') {
          flat += text[at];
          continue;
        }
        while (text[at + 1] == ' ') ++at;
        if (flat.ends_with(',')) flat += ' ';
      }
      text.replace(array, kNone, flat);
      array = kNone;
    }
  }
  return text;
}

double to_microseconds(double ms) { return std::round(1e3 * ms) / 1e3; }

OrderedJson json_of(const std::optional<double>& value) {
  return value ? OrderedJson(*value) : OrderedJson(nullptr);
}

// The fields that are stored unchanged, with their names. Writing and reading use the same lists.
constexpr auto field = [](const char* name, auto member) { return std::pair(name, member); };
constexpr std::tuple kPlan(field("bench", &Results::bench), field("net", &Results::net),
                           field("data", &Results::data), field("device", &Results::device),
                           field("precision", &Results::precision),
                           field("options", &Results::options), field("batch", &Results::batch),
                           field("iterations", &Results::iterations),
                           field("timed", &Results::timed), field("repeats", &Results::repeats),
                           field("tests", &Results::tests),
                           field("parameters", &Results::parameters), field("seed", &Results::seed),
                           field("target_accuracy", &Results::target_accuracy),
                           field("optimum", &Results::optimum));
// Stored only if it is set: most files do not have it.
constexpr const char* kBatchPerWorker = "batch_per_worker";
constexpr const char* kSimulated = "simulated";
constexpr const char* kRanksPerNode = "ranks_per_node";
constexpr std::tuple kEnvironment(
    field("tandem", &Environment::tandem), field("processor", &Environment::processor),
    field("cores", &Environment::cores), field("memory", &Environment::memory),
    field("gpu", &Environment::gpu), field("system", &Environment::system),
    field("versions", &Environment::versions), field("transport", &Environment::transport),
    field("date", &Environment::date), field("command", &Environment::command));
constexpr std::tuple kCell(field("name", &Cell::name), field("algo", &Cell::algo),
                           field("compress", &Cell::compress), field("link", &Cell::link),
                           field("workers", &Cell::workers));
constexpr std::tuple kCellDone(field("bytes_per_iteration", &Cell::bytes_per_iteration),
                               field("test_accuracy", &Cell::test_accuracy),
                               field("train_loss", &Cell::train_loss),
                               field("warmup", &Cell::warmup),
                               field("weights_hash", &Cell::weights_hash));
constexpr std::tuple kBreakdown(field("compute", &Breakdown::compute),
                                field("compress", &Breakdown::compress),
                                field("exposed", &Breakdown::exposed),
                                field("other", &Breakdown::other),
                                field("hidden", &Breakdown::hidden));

constexpr std::tuple kModel(field("workers", &ModelInput::workers),
                            field("gradient_bytes", &ModelInput::gradient_bytes),
                            field("wire_bytes", &ModelInput::wire_bytes),
                            field("closed", &ModelInput::closed));
constexpr std::tuple kCompute(field("update_s", &ComputeCost::update),
                              field("forward_s", &ComputeCost::forward),
                              field("backward_s", &ComputeCost::backward));
constexpr std::tuple kNetwork(field("alpha_s", &NetworkCost::alpha),
                              field("beta_s_per_byte", &NetworkCost::beta),
                              field("gamma_s_per_byte", &NetworkCost::gamma),
                              field("sync_s", &NetworkCost::sync));
constexpr std::tuple kLoad(field("others", &Load::others), field("stolen", &Load::stolen),
                           field("switches", &Load::switches));

template <class T>
void write_value(const T& from, OrderedJson& json) {
  json = from;
}
template <Named E>
void write_value(const E& from, OrderedJson& json) {
  json = to_string(from);
}
template <class T>
void read_value(const Parsed& json, T& to) {
  json.get_to(to);
}
// None of our whole numbers is negative.
template <std::integral T>
requires(!std::same_as<T, bool>) void read_value(const Parsed& json, T& to) {
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<T>::max());
  if (!is_whole(json, kMost))
    throw UserError("{} is not a whole number from 0 to {}", shown_value(json), kMost);
  json.get_to(to);
}
// Figures have axes from the smallest to the largest number.
template <>
void read_value(const Parsed& json, double& to) {
  constexpr double kLeast = 1e-30, kMost = 1e18;
  json.get_to(to);
  if (to != 0 && !(std::abs(to) >= kLeast && std::abs(to) <= kMost))
    throw UserError("{} is not a number between {} and {}", shown_value(json), kLeast, kMost);
}
template <class T>
T value_of(const Parsed& json) {
  T value{};
  read_value(json, value);
  return value;
}
template <Named E>
void read_value(const Parsed& json, E& to) {
  const auto name = json.get<std::string>();
  const auto value = from_string<E>(name);
  if (!value) throw UserError("{} is none of {}", shown(name, 40), fmt::join(names_of<E>(), ", "));
  to = *value;
}

template <class T>
void write(const auto& fields, const T& from, OrderedJson& json) {
  std::apply([&](const auto&... f) { (write_value(from.*f.second, json[f.first]), ...); }, fields);
}
template <class T>
void read(const auto& fields, const Parsed& json, T& to) {
  std::apply([&](const auto&... f) { (read_value(json.at(f.first), to.*f.second), ...); }, fields);
}

OrderedJson json_of(const Results& all, const Cell& c) {
  OrderedJson cell;
  write(kCell, c, cell);
  if (!c.done()) {
    cell["failure"] = c.failure;
    return cell;
  }
  cell["iteration_ms"] = {{"mean", c.iteration_ms()},
                          {"spread", json_of(c.spread_ms())},
                          {"median", c.median_ms},
                          {"predicted", json_of(c.predicted_ms)},
                          {"repeats", c.repeats_ms}};
  const std::string disturbed = c.disturbed();
  cell["disturbed"] = disturbed.empty() ? OrderedJson(nullptr) : OrderedJson(disturbed);
  cell["load"] = OrderedJson::array();
  for (const Load& load : c.loads) write(kLoad, load, cell["load"].emplace_back());
  write(kBreakdown, c.breakdown, cell["breakdown_ms"]);
  write(kCellDone, c, cell);
  if (all.simulated) {
    cell["simulated_ranks"] = c.simulated_ranks;
    cell["measured_ms"] = json_of(c.measured_ms);
  }
  cell["over_ps_sync"] = json_of(all.speedup(c, "PS-Sync"));
  cell["over_d_sync"] = json_of(all.speedup(c, "D-Sync"));
  cell["over_d_sync_same_bits"] = json_of(all.speedup_at_same_bits(c));
  cell["target_s"] = json_of(c.seconds_to(all.target_accuracy));
  cell["model"] = nullptr;
  if (c.model) {
    write(kModel, *c.model, cell["model"]);
    if (c.model->ranks_per_node > 1) cell["model"][kRanksPerNode] = c.model->ranks_per_node;
    for (const StrategyOption& option : strategy_named(c.algo).options)
      cell["model"][summary_key(option.name)] = option_value(c.model->options, option.name);
    write(kCompute, c.model->compute, cell["model"]);
    write(kNetwork, c.model->network, cell["model"]);
  }
  cell["curve"] = OrderedJson::array();
  for (const CurvePoint& p : c.curve)
    cell["curve"].push_back({p.wall_s, p.iteration, p.accuracy, json_of(p.objective)});
  cell["timeline"] = OrderedJson::array();
  for (const TimelineSpan& s : c.timeline)
    cell["timeline"].push_back({s.rank, s.server, s.communicates, s.what, to_microseconds(s.begin),
                                to_microseconds(s.end), s.iteration});
  return cell;
}

Cell cell_from(const Parsed& json) {
  Cell c;
  read(kCell, json, c);
  const StrategyInfo* algo = find_strategy(c.algo);
  if (!algo || algo->rows.label.empty() || c.name != row_name(algo->rows.label, c.compress) ||
      !wrong_compression(c.compress).empty())
    throw UserError("there is no algorithm {}", shown(c.name, 40));
  if (c.workers < 1 || c.workers > kMostWorkers)
    throw UserError("{} is not a number of workers from 1 to {}", c.workers, kMostWorkers);
  parse_link(c.link);
  if (json.contains("failure")) {
    c.failure = json.at("failure");
    return c;
  }
  const Parsed& ms = json.at("iteration_ms");
  for (const Parsed& repeat : ms.at("repeats")) c.repeats_ms.push_back(value_of<double>(repeat));
  read_value(ms.at("median"), c.median_ms);
  if (!ms.at("predicted").is_null()) c.predicted_ms = value_of<double>(ms.at("predicted"));
  for (const Parsed& load : json.at("load")) read(kLoad, load, c.loads.emplace_back());
  read(kBreakdown, json.at("breakdown_ms"), c.breakdown);
  read(kCellDone, json, c);
  if (json.contains("simulated_ranks")) {
    c.simulated_ranks = shown(json.at("simulated_ranks").get<std::string>(), 200);
    if (!json.at("measured_ms").is_null()) c.measured_ms = value_of<double>(json.at("measured_ms"));
  }
  if (const Parsed& model = json.at("model"); !model.is_null()) {
    c.model.emplace().algo = c.algo;
    read(kModel, model, *c.model);
    if (model.contains(kRanksPerNode)) read_value(model.at(kRanksPerNode), c.model->ranks_per_node);
    for (const StrategyOption& option : strategy_named(c.algo).options)
      if (const auto value = model.find(summary_key(option.name)); value != model.end())
        read_value(*value, c.model->options[option.name]);
    read(kCompute, model, c.model->compute);
    read(kNetwork, model, c.model->network);
  }
  for (const Parsed& p : json.at("curve"))
    c.curve.push_back(
        {.wall_s = value_of<double>(p.at(0)),
         .iteration = value_of<std::int64_t>(p.at(1)),
         .accuracy = value_of<double>(p.at(2)),
         .objective = p.at(3).is_null() ? std::nullopt : std::optional(value_of<double>(p.at(3)))});
  for (const Parsed& s : json.at("timeline"))
    c.timeline.push_back({.rank = value_of<int>(s.at(0)),
                          .server = s.at(1),
                          .communicates = s.at(2),
                          .what = s.at(3),
                          .begin = value_of<double>(s.at(4)),
                          .end = value_of<double>(s.at(5)),
                          .iteration = value_of<std::int64_t>(s.at(6))});
  return c;
}

Results results_from(const Parsed& json) {
  if (json.at("format") != kFormat)
    throw UserError("its format is {}, not {}", shown_value(json.at("format")), kFormat);
  Results r;
  read(kPlan, json, r);
  if (json.contains(kBatchPerWorker)) read_value(json.at(kBatchPerWorker), r.batch_per_worker);
  r.simulated = json.contains(kSimulated) && json.at(kSimulated) == true;
  read(kEnvironment, json.at("environment"), r.environment);
  for (const Parsed& cell : json.at("cells")) r.cells.push_back(cell_from(cell));
  return r;
}

}  // namespace

std::string valid_text(const std::string& text) {
  return OrderedJson::parse(
      OrderedJson(text).dump(-1, ' ', false, OrderedJson::error_handler_t::replace));
}

std::string to_json(const Results& r) {
  OrderedJson json = {{"format", kFormat}};
  write(kPlan, r, json);
  if (r.batch_per_worker > 0) json[kBatchPerWorker] = r.batch_per_worker;
  if (r.simulated) json[kSimulated] = true;
  write(kEnvironment, r.environment, json["environment"]);
  json["cells"] = OrderedJson::array();
  for (const Cell& cell : r.cells) json["cells"].push_back(json_of(r, cell));
  return with_flat_arrays(json.dump(1, ' ', false, OrderedJson::error_handler_t::replace)) + "\n";
}

Results read_results(const std::string& path) {
  const auto refusal = [&](const std::exception& e) {
    return UserError("{} is not a results.json of build/speedup or build/simulate: {}", path,
                     shown(e.what(), 300));
  };
  try {
    if (const auto bytes = regular_file_bytes(path); bytes > kMostBytes)
      throw UserError("it has {} bytes, more than the limit of {}", bytes, kMostBytes);
    return results_from(parse_json(read_file(path)));
  } catch (const std::runtime_error& e) {
    throw refusal(e);
  } catch (const Parsed::exception& e) {
    throw refusal(e);
  }
}

}  // namespace tandem

#include "train/speedup/results.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tensor/error.h"
#include "train/files.h"
#include "train/statistics.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormat = 1;

Json json_of(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json json_of(const Results& all, const Cell& c) {
  Json cell = {{"name", c.name},
               {"algo", c.algo},
               {"compress", c.compress},
               {"link", c.link},
               {"workers", c.workers}};
  if (!c.done()) {
    cell["failure"] = c.failure;
    return cell;
  }
  const Breakdown& b = c.breakdown;
  cell["iteration_ms"] = {{"median", c.iteration_ms()},
                          {"predicted", json_of(c.predicted_ms)},
                          {"repeats", c.repeats_ms}};
  cell["breakdown_ms"] = {{"compute", b.compute},
                          {"compress", b.compress},
                          {"exposed", b.exposed},
                          {"wait", b.wait},
                          {"hidden", b.hidden}};
  cell["bytes_per_iteration"] = c.bytes_per_iteration;
  cell["over_ps_sync"] = json_of(all.speedup(c, "PS-Sync"));
  cell["over_d_sync"] = json_of(all.speedup(c, "D-Sync"));
  cell["test_accuracy"] = c.test_accuracy;
  cell["train_loss"] = c.train_loss;
  cell["target_s"] = json_of(c.seconds_to(all.target_accuracy));
  cell["weights_hash"] = c.weights_hash;
  cell["curve"] = Json::array();
  for (const CurvePoint& p : c.curve) cell["curve"].push_back({p.wall_s, p.iteration, p.accuracy});
  cell["timeline"] = Json::array();
  for (const TimelineSpan& s : c.timeline)
    cell["timeline"].push_back(
        {s.rank, s.server, s.communicates, s.what, s.begin, s.end, s.iteration});
  return cell;
}

Cell cell_from(const Json& json) {
  Cell c{.name = json.at("name"),
         .algo = json.at("algo"),
         .compress = json.at("compress"),
         .workers = json.at("workers"),
         .link = json.at("link")};
  if (json.contains("failure")) {
    c.failure = json.at("failure");
    return c;
  }
  const Json& ms = json.at("iteration_ms");
  c.repeats_ms = ms.at("repeats").get<std::vector<double>>();
  if (!ms.at("predicted").is_null()) c.predicted_ms = ms.at("predicted").get<double>();
  const Json& b = json.at("breakdown_ms");
  c.breakdown = {.compute = b.at("compute"),
                 .compress = b.at("compress"),
                 .exposed = b.at("exposed"),
                 .wait = b.at("wait"),
                 .hidden = b.at("hidden")};
  c.bytes_per_iteration = json.at("bytes_per_iteration");
  c.test_accuracy = json.at("test_accuracy");
  c.train_loss = json.at("train_loss");
  c.weights_hash = json.at("weights_hash");
  for (const Json& p : json.at("curve"))
    c.curve.push_back({.wall_s = p.at(0), .iteration = p.at(1), .accuracy = p.at(2)});
  for (const Json& s : json.at("timeline"))
    c.timeline.push_back({.rank = s.at(0),
                          .server = s.at(1),
                          .communicates = s.at(2),
                          .what = s.at(3),
                          .begin = s.at(4),
                          .end = s.at(5),
                          .iteration = s.at(6)});
  return c;
}

Results results_from(const Json& json) {
  require(json.at("format") == kFormat, "this is format {}, not {}", json.at("format").dump(),
          kFormat);
  const Json& e = json.at("environment");
  Results r{.bench = json.at("bench"),
            .net = json.at("net"),
            .data = json.at("data"),
            .device = json.at("device"),
            .precision = json.at("precision"),
            .options = json.at("options"),
            .batch = json.at("batch"),
            .iterations = json.at("iterations"),
            .repeats = json.at("repeats"),
            .parameters = json.at("parameters"),
            .seed = json.at("seed"),
            .target_accuracy = json.at("target_accuracy"),
            .environment = {.processor = e.at("processor"),
                            .memory = e.at("memory"),
                            .system = e.at("system"),
                            .gpu = e.at("gpu"),
                            .versions = e.at("versions"),
                            .cores = e.at("cores"),
                            .transport = e.at("transport"),
                            .date = e.at("date"),
                            .command = e.at("command")}};
  for (const Json& cell : json.at("cells")) r.cells.push_back(cell_from(cell));
  return r;
}

}  // namespace

const std::vector<Algorithm>& all_algorithms() {
  static const std::vector<Algorithm> all = {
      {"PS-Sync", "ps-sync", "none"},       {"D-Sync", "d-sync", "none"},
      {"D-Sync+T", "d-sync", "trunc16"},    {"D-Sync+Q", "d-sync", "quant8"},
      {"Pipe-SGD", "pipe-sgd", "none"},     {"Pipe-SGD+T", "pipe-sgd", "trunc16"},
      {"Pipe-SGD+Q", "pipe-sgd", "quant8"},
  };
  return all;
}

double Cell::iteration_ms() const { return quantile(repeats_ms, 0.5); }

std::optional<double> Cell::seconds_to(double accuracy) const {
  const auto reached = std::ranges::find_if(
      curve, [&](const CurvePoint& point) { return point.accuracy >= accuracy; });
  if (reached == curve.end()) return {};
  return reached->wall_s;
}

std::vector<std::span<const Cell>> Results::settings() const {
  std::vector<std::span<const Cell>> all;
  for (auto begin = cells.begin(); begin != cells.end();) {
    const auto end = std::find_if(begin, cells.end(), [&](const Cell& c) {
      return c.workers != begin->workers || c.link != begin->link;
    });
    all.emplace_back(begin, end);
    begin = end;
  }
  return all;
}

const Cell* Results::beside(const Cell& cell, std::string_view algorithm) const {
  const auto found = std::ranges::find_if(cells, [&](const Cell& other) {
    return other.name == algorithm && other.workers == cell.workers && other.link == cell.link &&
           other.done();
  });
  return found == cells.end() ? nullptr : &*found;
}

std::optional<double> Results::speedup(const Cell& cell, std::string_view over) const {
  const Cell* other = beside(cell, over);
  if (!other || !cell.done()) return {};
  return other->iteration_ms() / cell.iteration_ms();
}

std::string to_json(const Results& r) {
  const Environment& e = r.environment;
  Json json = {{"format", kFormat},
               {"bench", r.bench},
               {"net", r.net},
               {"data", r.data},
               {"device", r.device},
               {"precision", r.precision},
               {"options", r.options},
               {"batch", r.batch},
               {"iterations", r.iterations},
               {"repeats", r.repeats},
               {"parameters", r.parameters},
               {"seed", r.seed},
               {"target_accuracy", r.target_accuracy},
               {"environment",
                {{"processor", e.processor},
                 {"cores", e.cores},
                 {"memory", e.memory},
                 {"gpu", e.gpu},
                 {"system", e.system},
                 {"versions", e.versions},
                 {"transport", e.transport},
                 {"date", e.date},
                 {"command", e.command}}},
               {"cells", Json::array()}};
  for (const Cell& cell : r.cells) json["cells"].push_back(json_of(r, cell));
  return json.dump(1) + "\n";
}

Results read_results(const std::string& path) {
  try {
    return results_from(Json::parse(read_file(path)));
  } catch (const std::exception& e) {
    throw UserError("{} is not a results.json of build/speedup: {}", path, e.what());
  }
}

}  // namespace tandem

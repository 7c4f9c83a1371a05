#include "speedup/what_if.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <tuple>
#include <vector>

#include "dist/transport/link_speed.h"
#include "speedup/html.h"
#include "speedup/palette.h"
#include "speedup/table.h"

namespace tandem {
namespace {

using OrderedJson = nlohmann::ordered_json;

struct Unit {
  double value;
  const char* name;
};

// With the largest unit that is not larger than the value.
std::string with_unit(double value, std::span<const Unit> units) {
  for (const Unit& unit : units)
    if (value >= unit.value * (1 - 1e-9))
      return fmt::format("{:.6g} {}", value / unit.value, unit.name);
  return fmt::format("{:.6g} {}", value / units.back().value, units.back().name);
}

std::string bandwidth_text(const LinkSpeed& speed) {
  constexpr Unit kRates[] = {{1e9, "Gbit/s"}, {1e6, "Mbit/s"}, {1e3, "kbit/s"}};
  return speed.limited() ? with_unit(8 * speed.bytes_per_s, kRates) : "no limit";
}

std::string latency_text(const LinkSpeed& speed) {
  constexpr Unit kTimes[] = {{1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}, {1e-9, "ns"}};
  return speed.latency_s > 0 ? with_unit(speed.latency_s, kTimes) : "0 µs";
}

// A finished cell. Two links are the same if they are in words: 80us and 0.08ms differ in their
// last bit.
struct Point {
  const Cell* cell;
  LinkSpeed speed;
  std::string workers, bandwidth, latency;
};

std::vector<Point> finished(const Results& results) {
  std::vector<Point> points;
  for (const Cell& cell : results.cells) {
    // No time and no samples have no place on an axis of throughput.
    if (!cell.done() || cell.iteration_ms() <= 0 || results.samples(cell.workers) <= 0) continue;
    const LinkSpeed speed = parse_link(cell.link);
    points.push_back(
        {&cell, speed, std::to_string(cell.workers), bandwidth_text(speed), latency_text(speed)});
  }
  return points;
}

// A position of a slider.
struct Value {
  std::string text;   // on an axis
  double order;       // by which positions are sorted
  std::string shown;  // beside the slider
  std::string label;  // in a sentence
};

struct Axis {
  std::string name, title;
  std::string Point::*text;
  std::vector<Value> values;

  bool varies() const { return values.size() > 1; }
  void add(Value value) {
    if (std::ranges::find(values, value.text, &Value::text) == values.end())
      values.push_back(std::move(value));
  }
  std::ptrdiff_t index(const Point& point) const {
    return std::ranges::find(values, point.*text, &Value::text) - values.begin();
  }
};

// Whether a bandwidth never comes with two latencies. Then a slider of latencies would only lead to
// settings that do not exist.
bool latency_goes_with_bandwidth(const std::vector<Point>& points) {
  std::map<std::string, std::string> latency_of;
  return std::ranges::all_of(points, [&](const Point& p) {
    return latency_of.try_emplace(p.bandwidth, p.latency).first->second == p.latency;
  });
}

// Workers, bandwidth, latency.
std::vector<Axis> axes_of(std::vector<Point>& points) {
  const bool links =
      latency_goes_with_bandwidth(points) &&
      std::ranges::any_of(points, [&](auto& p) { return p.latency != points[0].latency; });
  Axis workers{"workers", "Workers", &Point::workers, {}};
  Axis bandwidth{"bandwidth", links ? "Link" : "Bandwidth", &Point::bandwidth, {}};
  Axis latency{"latency", "Latency, one way", &Point::latency, {}};
  for (Point& p : points) {
    workers.add({p.workers, static_cast<double>(p.cell->workers), p.workers,
                 workers_text(p.cell->workers)});
    Value rate{p.bandwidth, p.speed.bytes_per_s, p.bandwidth, p.bandwidth};
    if (!p.speed.limited()) {
      rate.order = std::numeric_limits<double>::infinity();
      rate.label = "unlimited bandwidth";
    }
    Value delay{p.latency, p.speed.latency_s, p.latency, p.latency + " latency"};
    if (links) {  // one slider for both
      rate.shown += ", " + delay.shown;
      rate.label += ", " + delay.label;
      p.latency.clear();
      delay = {};
    }
    bandwidth.add(std::move(rate));
    latency.add(std::move(delay));
  }
  std::vector<Axis> axes = {std::move(workers), std::move(bandwidth), std::move(latency)};
  for (Axis& axis : axes) std::ranges::sort(axis.values, {}, &Value::order);
  return axes;
}

// Rows that differ only in compression may share a colour.
std::string dashes(const Cell& cell) {
  return cell.compress == "trunc16" ? "8 4" : cell.compress == "quant8" ? "2 4" : "";
}

std::vector<const Cell*> algorithms_of(const std::vector<Point>& points) {
  std::vector<const Cell*> all;  // the first cell of each
  for (const Point& point : points)
    if (std::ranges::find(all, point.cell->name, &Cell::name) == all.end())
      all.push_back(point.cell);
  return all;
}

// What the script draws. Cells refer to algorithms and positions by index.
OrderedJson data_of(const Results& results, const std::vector<Point>& points,
                    const std::vector<Axis>& axes, const std::vector<const Cell*>& algorithms) {
  OrderedJson data = {{"axes", OrderedJson::array()},
                      {"algorithms", OrderedJson::array()},
                      {"cells", OrderedJson::array()}};
  for (const Axis& axis : axes) {
    OrderedJson& values = data["axes"].emplace_back(
        OrderedJson{{"name", axis.name}, {"values", OrderedJson::array()}})["values"];
    for (const Value& v : axis.values)
      values.push_back({{"tick", v.text}, {"shown", v.shown}, {"label", v.label}});
  }
  for (std::size_t i = 0; i < axes[0].values.size(); ++i) {
    const double workers = axes[0].values[i].order;
    data["axes"][0]["values"][i]["workers"] = workers;
    data["axes"][0]["values"][i]["samples"] = results.samples(static_cast<int>(workers));
  }
  for (const Cell* cell : algorithms)
    data["algorithms"].push_back({{"name", cell->name},
                                  {"colour", algorithm_colour(cell->name)},
                                  {"dashes", dashes(*cell)}});
  for (const Point& p : points) {
    OrderedJson cell = {std::ranges::find(algorithms, p.cell->name, &Cell::name) -
                        algorithms.begin()};
    for (const Axis& axis : axes) cell.push_back(axis.index(p));
    // Six digits: pages with thousands of cells stay small.
    cell.push_back(std::stod(fmt::format("{:.6g}", p.cell->iteration_ms())));
    data["cells"].push_back(std::move(cell));
  }
  return data;
}

// JSON for a script element, which would end at "</script" in a text. Only texts have a "<".
std::string embedded(const OrderedJson& data) {
  std::string json;
  for (const char c : data.dump(-1, ' ', false, OrderedJson::error_handler_t::replace))
    c == '<' ? json += "\\u003c" : json += c;
  return json;
}

std::string slider(const Axis& axis, std::ptrdiff_t start) {
  return fmt::format(
      R"(<div class="slider"{0}>
<label for="what-if-{1}">{2}</label> <span class="shown" aria-hidden="true"></span>
<input type="range" id="what-if-{1}" min="0" max="{3}" step="1" value="{4}"{5}>
<div class="ends" aria-hidden="true"><span>{6}</span><span>{7}</span></div>
</div>
)",
      axis.varies() ? "" : " hidden", axis.name, axis.title, axis.values.size() - 1, start,
      axis.varies() ? "" : " disabled", escaped(axis.values.front().text),
      escaped(axis.values.back().text));
}

std::string legend_entry(const std::string& name, const std::string& colour,
                         const std::string& dashes) {
  return fmt::format(
      "<span><svg width=\"28\" height=\"10\" aria-hidden=\"true\"><line x1=\"0\" y1=\"5\" "
      "x2=\"28\" y2=\"5\" style=\"stroke:{}\" stroke-width=\"2.5\" stroke-dasharray=\"{}\"/></svg> "
      "{}</span>\n",
      colour, dashes, escaped(name));
}

}  // namespace

std::string what_if_html(const Results& results) {
  constexpr std::size_t kFewestSettings = 3;
  std::vector<Point> points = finished(results);
  std::set<std::tuple<std::string, std::string, std::string>> settings;
  for (const Point& p : points) settings.emplace(p.workers, p.bandwidth, p.latency);
  if (settings.size() < kFewestSettings) return "";

  const std::vector<Axis> axes = axes_of(points);
  const std::vector<const Cell*> algorithms = algorithms_of(points);
  std::string sliders, legend;
  for (const Axis& axis : axes) sliders += slider(axis, axis.index(points[points.size() / 2]));
  for (const Cell* cell : algorithms)
    legend += legend_entry(cell->name, algorithm_colour(cell->name), dashes(*cell));
  if (axes[0].varies())
    legend += legend_entry("linear: twice the workers, twice the throughput", "var(--soft)", "1 3");

  return fmt::format(
      R"(<h2 id="what-if">What if?</h2>
<p>The sliders choose a setting among those of the tables. Nothing is interpolated. {}</p>
<noscript><p class="missing">The sliders need JavaScript. The tables above have all numbers.</p></noscript>
<div id="what-if-choice" hidden>
<div class="sliders">
{}</div>
<output id="what-if-answer" for="what-if-workers what-if-bandwidth what-if-latency" aria-live="polite"></output>
<div class="charts">
<div><h3 id="what-if-over"></h3><svg id="what-if-curves" role="img"></svg>
<p class="legend">{}</p></div>
<div><h3>Time of an iteration</h3><svg id="what-if-bars" role="img"></svg></div>
</div>
</div>
<script type="application/json" id="what-if-data">{}</script>
)",
      results.batch_per_worker > 0
          ? fmt::format(
                "Every worker has a batch of {}, so the whole batch grows with the workers.",
                results.batch_per_worker)
          : fmt::format("The workers divide a batch of {} among them.", results.batch),
      sliders, legend, embedded(data_of(results, points, axes, algorithms)));
}

}  // namespace tandem

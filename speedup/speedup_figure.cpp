#include "speedup/figure_scripts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "dist/strategies.h"
#include "dist/transport/link_speed.h"
#include "speedup/palette.h"

namespace tandem {
namespace {

// Speedups of all algorithms along an axis, over D-Sync and over PS-Sync if they were measured.
struct FigureAxis {
  std::string name, title, label;
  std::string at;  // what is constant along the axis
  std::function<std::optional<double>(const Cell&)>
      position;  // the cell's position, if it is on the axis
  // `steps`: positions between two others. `place`: sets what a model depends on at a position
  // besides its costs.
  std::function<std::vector<double>(double from, double to)> steps;
  std::function<void(ModelInput& model, double position)> place;
  std::string settings = {};  // gnuplot's, for the axis
};

// One algorithm and the baseline it is compared with, at one position.
struct Pair {
  const Cell *cell, *base;
};

// By position. Two links can have the same bandwidth and different latencies.
std::multimap<double, Pair> pairs_of(const Results& results, const FigureAxis& axis,
                                     const std::string& name, const char* over) {
  std::multimap<double, Pair> pairs;
  for (const Cell& cell : results.cells) {
    const auto position = axis.position(cell);
    const Cell* base = results.beside(cell, over);
    if (cell.name == name && cell.done() && base && position)
      pairs.emplace(*position, Pair{&cell, base});
  }
  return pairs;
}

// The model's input at a point between two settings. Costs that follow a power law, as 1/bandwidth
// does, are interpolated exactly.
ModelInput between(const ModelInput& a, const ModelInput& b, double share) {
  const auto mix = [share](double from, double to) {
    return from > 0 && to > 0 ? from * std::pow(to / from, share) : from + share * (to - from);
  };
  ModelInput m = a;
  m.compute = {.update = mix(a.compute.update, b.compute.update),
               .forward = mix(a.compute.forward, b.compute.forward),
               .backward = mix(a.compute.backward, b.compute.backward)};
  m.network = {.alpha = mix(a.network.alpha, b.network.alpha),
               .beta = mix(a.network.beta, b.network.beta),
               .gamma = mix(a.network.gamma, b.network.gamma),
               .sync = mix(a.network.sync, b.network.sync)};
  return m;
}

// The predicted speedup, also between the measured positions.
std::string predicted_curve(const FigureAxis& axis, const std::multimap<double, Pair>& pairs) {
  std::string points;
  for (auto at = pairs.begin(); at != pairs.end();) {
    const auto next = pairs.upper_bound(at->first);
    if (next == pairs.end()) break;
    const auto& [x0, from] = *at;
    const auto& [x1, to] = *next;
    at = next;
    if (!from.cell->model || !from.base->model || !to.cell->model || !to.base->model) {
      points += "\n";  // a gap
      continue;
    }
    for (const double x : axis.steps(x0, x1)) {
      const double share = std::log(x / x0) / std::log(x1 / x0);
      const auto predicted = [&](const Cell& a, const Cell& b) {
        ModelInput m = between(*a.model, *b.model, share);
        axis.place(m, x);
        return predicted_iteration(m);
      };
      const auto own = predicted(*from.cell, *to.cell), base = predicted(*from.base, *to.base);
      if (own && base) points += fmt::format("{:.6g} {:.6g}\n", x, *base / *own);
    }
  }
  return points;
}

std::string points_of(const std::multimap<double, Pair>& pairs) {
  std::string points;
  for (const auto& [x, pair] : pairs)
    points +=
        fmt::format("{:.6g} {:.6g}\n", x, pair.base->iteration_ms() / pair.cell->iteration_ms());
  return points;
}

// Speedups of real runs beside simulated ones, as open circles.
std::string measured_points(const std::multimap<double, Pair>& pairs) {
  std::string points;
  for (const auto& [x, pair] : pairs)
    if (pair.cell->measured_ms && pair.base->measured_ms)
      points +=
          fmt::format("{:.6g} {:.6g}\n", x, *pair.base->measured_ms / *pair.cell->measured_ms);
  return points;
}

std::optional<GnuplotFigure> speedup_figure(const Results& results, const FigureAxis& axis) {
  GnuplotFigure figure{.name = axis.name, .title = axis.title};
  std::string& script = figure.script;
  std::vector<std::string> overs, plots;
  std::set<double> positions;
  std::set<std::string> drawn;
  const std::vector<Algorithm> rows = rows_of(results.cells);
  for (const char* over : {"D-Sync", "PS-Sync"}) {
    std::string plot;
    std::vector<std::string> names;
    for (const Algorithm& a : rows) {
      const auto pairs = pairs_of(results, axis, a.name, over);
      if (pairs.empty() || a.name == over) continue;
      const std::string block = fmt::format("panel{}_{}", plots.size(), names.size());
      script += fmt::format("${} << end\n", block);
      for (const auto& [x, pair] : pairs) {
        const auto [least, most] = std::ranges::minmax(pair.cell->repeats_ms);
        const double base = pair.base->iteration_ms();
        script += fmt::format("{:.6g} {:.6g} {:.6g} {:.6g}\n", x, base / pair.cell->iteration_ms(),
                              base / most, base / least);
        positions.insert(x);
      }
      // Lines connect simulated points, because there is no model between them.
      const std::string curve = results.simulated ? points_of(pairs) : predicted_curve(axis, pairs);
      script +=
          fmt::format("end\n$model_{} << end\n{}end\n", block, curve.empty() ? "NaN NaN\n" : curve);
      plot += fmt::format(
          "{0}$model_{1} using 1:2 with lines {2}, \\\n  ${1} using 1:2:3:4 with yerrorbars "
          "linecolor rgb \"{3}\" linewidth 1.5 {4}",
          plot.empty() ? "plot " : ", \\\n  ", block, line_style(a.name, a.compress),
          algorithm_colour(a.name), point_style(a.compress));
      drawn.insert(a.name);
      if (results.simulated)
        names.insert(names.end(), {a.name + ", line", a.name + ", simulated"});
      else
        names.insert(names.end(), {a.name + ", predicted", a.name + ", measured"});
      if (const std::string measured = measured_points(pairs); !measured.empty()) {
        script += fmt::format("$measured_{} << end\n{}end\n", block, measured);
        plot += fmt::format(
            ", \\\n  $measured_{} using 1:2 with points linecolor rgb \"{}\" linewidth 2 "
            "pointtype 6 pointsize 1.6",
            block, algorithm_colour(a.name));
        names.push_back(a.name + ", measured");
      }
    }
    if (plot.empty()) continue;
    overs.push_back(over);
    plots.push_back(plot + ", \\\n  1 with lines " + kReferenceLine);
    names.push_back(over);
    figure.panels.push_back(names);
  }
  if (positions.size() < 2) return {};

  std::string tics, key;  // for both panels
  for (const double x : positions)
    tics += fmt::format("{0}\"{1:g}\" {1:.6g}", tics.empty() ? "" : ", ", x);
  for (const Algorithm& a : rows)
    if (drawn.contains(a.name))
      key +=
          fmt::format(", \\\n  NaN with linespoints {} {} title {}", line_style(a.name, a.compress),
                      point_style(a.compress), gnuplot_quoted(a.name));
  script += fmt::format(
      "{}set xlabel \"{}\"\nset xtics ({})\n{}set yrange [0:*]\nset ylabel \"speedup\"\n"
      "set offsets graph 0.05, graph 0.05, graph 0.05, 0\n",
      plots.size() > 1 ? "set multiplot\n" : "", axis.label, tics, axis.settings);
  for (std::size_t i = 0; i < plots.size(); ++i) {
    const bool last = i + 1 == plots.size();
    script += margins({.left = (i ? kRightPanel : kLeftPanel).left,
                       .right = (last ? kRightPanel : kLeftPanel).right});
    script += fmt::format("set title {}\n",
                          gnuplot_quoted(fmt::format("speedup over {} ({})", overs[i], axis.at)));
    script +=
        last ? kKeyBeside + plots[i] + key + "\n" : "unset key\n" + plots[i] + "\nunset ylabel\n";
  }
  return figure;
}

}  // namespace

std::optional<GnuplotFigure> links_figure(const Results& results) {
  if (results.cells.empty()) return {};
  return speedup_figure(results,
                        {.name = "links",
                         .title = "Speedup by link bandwidth",
                         .label = "link bandwidth, Gbit/s",
                         .at = workers_text(results.cells[0].workers),
                         .position = [&](const Cell& cell) -> std::optional<double> {
                           const LinkSpeed link = parse_link(cell.link);
                           if (cell.workers != results.cells[0].workers || !link.limited())
                             return {};
                           return link.bytes_per_s * 8 / 1e9;
                         },
                         .steps =
                             [](double from, double to) {
                               constexpr int kSteps = 40;
                               std::vector<double> all;
                               for (int i = 0; i <= kSteps; ++i)
                                 all.push_back(from * std::pow(to / from, i / double{kSteps}));
                               return all;
                             },
                         .place = [](ModelInput&, double) {},
                         .settings = "set logscale x\n"});
}

std::optional<GnuplotFigure> workers_figure(const Results& results) {
  if (results.cells.empty()) return {};
  return speedup_figure(results,
                        {.name = "workers",
                         .title = "Speedup by number of workers",
                         .label = "workers",
                         .at = "link " + results.cells[0].link,
                         .position = [&](const Cell& cell) -> std::optional<double> {
                           if (cell.link != results.cells[0].link) return {};
                           return cell.workers;
                         },
                         .steps =
                             [](double from, double to) {
                               std::vector<double> all;
                               for (double p = from; p <= to; ++p) all.push_back(p);
                               return all;
                             },
                         .place = [](ModelInput& m, double p) { m.workers = static_cast<int>(p); },
                         .settings = results.simulated ? "set logscale x 2\n" : ""});
}

}  // namespace tandem

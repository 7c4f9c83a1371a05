#include "train/speedup/figure_scripts.h"

#include <fmt/format.h>

#include <functional>
#include <map>
#include <set>

#include "dist/transport/link_speed.h"
#include "train/speedup/palette.h"

namespace tandem {
namespace {

// Speedups of all algorithms along an axis, over D-Sync and over PS-Sync where they are there.
struct Axis {
  std::string name, title, label;
  std::string at;                                              // what stays the same along it
  std::function<std::optional<double>(const Cell&)> position;  // on the axis, if it is on it
  std::string settings;                                        // of the axis
};

struct SpeedupPoint {
  double measured;
  std::optional<double> predicted;
};

// By position; two links can be equally fast and differ in latency.
std::multimap<double, SpeedupPoint> speedups(const Results& results, const Axis& axis,
                                             const std::string& name, const char* over) {
  std::multimap<double, SpeedupPoint> points;
  for (const Cell& cell : results.cells) {
    const auto position = axis.position(cell);
    const Cell* base = results.beside(cell, over);
    if (cell.name != name || !cell.done() || !base || !position) continue;
    SpeedupPoint point{.measured = *results.speedup(cell, over)};
    if (cell.predicted_ms && base->predicted_ms)
      point.predicted = *base->predicted_ms / *cell.predicted_ms;
    points.emplace(*position, point);
  }
  return points;
}

std::optional<GnuplotFigure> speedup_figure(const Results& results, const Axis& axis) {
  GnuplotFigure figure{.name = axis.name, .title = axis.title};
  std::string& script = figure.script;
  std::vector<std::string> overs, plots;
  std::set<double> positions;
  std::set<std::string> drawn;
  for (const char* over : {"D-Sync", "PS-Sync"}) {
    std::string plot;
    std::vector<std::string> names;
    for (const Algorithm& a : all_algorithms()) {
      const auto points = speedups(results, axis, a.name, over);
      if (points.empty() || a.name == over) continue;
      const std::string block = fmt::format("$panel{}_{}", plots.size(), names.size());
      script += block + " << end\n";
      for (const auto& [x, point] : points) {
        script += fmt::format("{:.6g} {:.6g} {}\n", x, point.measured,
                              point.predicted ? fmt::format("{:.6g}", *point.predicted) : "NaN");
        positions.insert(x);
      }
      script += "end\n";
      plot += fmt::format(
          "{0}{1} using 1:3 with lines {2}, \\\n  {1} using 1:2 with points linecolor rgb \"{3}\" "
          "{4}",
          plot.empty() ? "plot " : ", \\\n  ", block, line_style(a.name, a.compress),
          algorithm_colour(a.name), point_style(a.compress));
      drawn.insert(a.name);
      names.insert(names.end(), {a.name + ", predicted", a.name + ", measured"});
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
  for (const Algorithm& a : all_algorithms())
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
    script +=
        fmt::format("set title {}\n",
                    gnuplot_quoted(fmt::format("times as fast as {} ({})", overs[i], axis.at)));
    script +=
        last ? kKeyBeside + plots[i] + key + "\n" : "unset key\n" + plots[i] + "\nunset ylabel\n";
  }
  return figure;
}

}  // namespace

std::optional<GnuplotFigure> links_figure(const Results& results) {
  if (results.cells.empty()) return {};
  return speedup_figure(results, {.name = "links",
                                  .title = "Speedup against the bandwidth of a link",
                                  .label = "bandwidth of a link, Gbit/s",
                                  .at = workers_text(results.cells[0].workers),
                                  .position = [&](const Cell& cell) -> std::optional<double> {
                                    const LinkSpeed link = parse_link(cell.link);
                                    if (cell.workers != results.cells[0].workers || !link.limited())
                                      return {};
                                    return link.bytes_per_s * 8 / 1e9;
                                  },
                                  .settings = "set logscale x\n"});
}

std::optional<GnuplotFigure> workers_figure(const Results& results) {
  if (results.cells.empty()) return {};
  return speedup_figure(results, {.name = "workers",
                                  .title = "Speedup against the number of workers",
                                  .label = "workers",
                                  .at = "link " + results.cells[0].link,
                                  .position = [&](const Cell& cell) -> std::optional<double> {
                                    if (cell.link != results.cells[0].link) return {};
                                    return cell.workers;
                                  }});
}

}  // namespace tandem

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "speedup/figure_scripts.h"

namespace tandem {
namespace {

// Ticks at 1, 2 and 5 times every power of ten in the range.
std::string logarithmic_tics(double from, double to) {
  std::string tics;
  for (double power = std::pow(10, std::floor(std::log10(from))); power <= to; power *= 10)
    for (const int factor : {1, 2, 5})
      if (const double at = factor * power; at >= from && at <= to)
        tics += fmt::format("{}\"{:g}\" {:g}", tics.empty() ? "" : ", ", at, at);
  return fmt::format("set xtics ({})\n", tics);
}

// What a figure shows of every test.
struct Quantity {
  const char* name;
  const char* title;
  std::string y_axis;  // gnuplot's commands for it
  std::function<std::optional<double>(const CurvePoint&)> value;
  double reference = 0;  // height of a dashed reference line; 0: none
  std::string reference_title = {};
};

// By time on the left, by iteration on the right. Time is logarithmic, so that algorithms that
// differ by a factor of nine are all visible and equal factors are equal distances.
std::optional<GnuplotFigure> curves(const Results& results, std::span<const Cell> setting,
                                    const Quantity& quantity) {
  // A curve needs at least two tests.
  auto cells = done_cells(setting);
  std::erase_if(cells, [&](const Cell* cell) {
    return std::ranges::count_if(
               cell->curve, [&](const CurvePoint& p) { return quantity.value(p).has_value(); }) < 2;
  });
  if (cells.empty()) return {};
  GnuplotFigure figure{.name = quantity.name, .title = quantity.title};
  std::string& script = figure.script;
  std::string by_time, by_iteration;
  std::vector<std::string> names;
  double longest = 0, shortest = HUGE_VAL;
  for (const Cell* cell : cells) {
    const std::string block = fmt::format("$curve{}", names.size());
    script += block + " << end\n";
    for (const CurvePoint& p : cell->curve)
      if (const auto value = quantity.value(p))
        script += fmt::format("{:.6g} {} {:.6g}\n", p.wall_s, p.iteration, *value);
    script += "end\n";
    longest = std::max(longest, cell->curve.back().wall_s);
    for (const CurvePoint& p : cell->curve)
      if (p.wall_s > 0) shortest = std::min(shortest, p.wall_s);
    const char* before = names.empty() ? "plot " : ", \\\n  ";
    const std::string style =
        fmt::format("with linespoints {} {} pointnumber 12", line_style(cell->name, cell->compress),
                    point_style(cell->compress));
    by_time += fmt::format("{}{} using 1:3 {}", before, block, style);
    by_iteration +=
        fmt::format("{}{} using 2:3 {} title {}", before, block, style, gnuplot_quoted(cell->name));
    names.push_back(cell->name);
  }
  if (quantity.reference > 0) {
    names.push_back(quantity.reference_title);
    const std::string target =
        fmt::format(", \\\n  {:.6g} with lines {}", quantity.reference, kReferenceLine);
    by_time += target;
    by_iteration += target + " title " + gnuplot_quoted(names.back());
  }
  script += fmt::format(
      "set multiplot\n{}{}"
      "set title {}\nunset key\nset xlabel \"seconds of training{}\"\n"
      "set logscale x\nset xrange [{:.6g}:{:.6g}]\n{}{}\n",
      quantity.y_axis, margins(kLeftPanel),
      gnuplot_quoted(fmt::format("by time ({})", cells[0]->setting())),
      results.extrapolates() ? ": iterations × their mean time" : "", 0.9 * shortest, longest,
      logarithmic_tics(0.9 * shortest, longest), by_time);
  script += fmt::format(
      "unset ylabel\nunset logscale x\nset xtics autofreq\n{}{}set title \"by iteration\"\nset "
      "xlabel \"iterations\"\n"
      "set xrange [0:*]\n{}\nunset multiplot\n",
      margins(kRightPanel), kKeyBeside, by_iteration);
  figure.panels = {names, names};
  return figure;
}

}  // namespace

std::optional<GnuplotFigure> accuracy_figure(const Results& results,
                                             std::span<const Cell> setting) {
  return curves(
      results, setting,
      {.name = "accuracy",
       .title = "Test accuracy by time and by iteration",
       .y_axis = "set ylabel \"test accuracy, %\"\nset yrange [0<*:*<100]\n",
       .value = [](const CurvePoint& p) -> std::optional<double> { return 100 * p.accuracy; },
       .reference = 100 * results.target_accuracy,
       .reference_title = fmt::format("target {:.3g} %", 100 * results.target_accuracy)});
}

std::optional<GnuplotFigure> gap_figure(const Results& results, std::span<const Cell> setting) {
  if (results.optimum <= 0) return {};
  return curves(results, setting,
                {.name = "gap",
                 .title = "Objective above the optimum, by time and by iteration",
                 .y_axis = "set ylabel \"objective above the optimum\"\nset logscale y\n",
                 .value = [&](const CurvePoint& p) -> std::optional<double> {
                   if (!p.objective || *p.objective <= results.optimum) return {};
                   return *p.objective - results.optimum;
                 }});
}

}  // namespace tandem

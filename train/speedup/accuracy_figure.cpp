#include "train/speedup/figure_scripts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tandem {

std::optional<GnuplotFigure> accuracy_figure(const Results& results) {
  // One test alone makes no curve.
  auto cells = base_cells(results);
  std::erase_if(cells, [](const Cell* cell) { return cell->curve.size() < 2; });
  if (cells.empty()) return {};
  GnuplotFigure figure{.name = "accuracy", .title = "Test accuracy against wall-clock time"};
  std::string& script = figure.script;
  std::string lines, lines_and_points;
  std::vector<std::string> names;
  double longest = 0, shortest = HUGE_VAL;
  for (const Cell* cell : cells) {
    const std::string block = fmt::format("$curve{}", names.size());
    script += block + " << end\n";
    for (const CurvePoint& p : cell->curve)
      script += fmt::format("{:.6g} {:.6g}\n", p.wall_s, 100 * p.accuracy);
    script += "end\n";
    longest = std::max(longest, cell->curve.back().wall_s);
    shortest = std::min(shortest, cell->curve.back().wall_s);
    const char* before = names.empty() ? "plot " : ", \\\n  ";
    const std::string style = line_style(cell->name, cell->compress);
    lines += fmt::format("{}{} with lines {}", before, block, style);
    lines_and_points +=
        fmt::format("{}{} with linespoints {} {} pointnumber 12 title {}", before, block, style,
                    point_style(cell->compress), gnuplot_quoted(cell->name));
    names.push_back(cell->name);
  }
  if (results.target_accuracy > 0) {
    names.push_back(fmt::format("target {:.3g} %", 100 * results.target_accuracy));
    const std::string target =
        fmt::format(", \\\n  {:.6g} with lines {}", 100 * results.target_accuracy, kReferenceLine);
    lines += target;
    lines_and_points += target + " title " + gnuplot_quoted(names.back());
  }
  // The start ends where the fastest is through, or with the first quarter.
  const double start = std::min(shortest, longest / 4);
  script += fmt::format(
      "set multiplot\nset xlabel \"{}\"\nset ylabel \"test accuracy, %\"\n"
      "set yrange [0<*:*<100]\n",
      results.extrapolates() ? "seconds of training: iterations times their mean time"
                             : "seconds of training");
  script += margins(kLeftPanel);
  script += fmt::format(
      "set title {}\nunset key\nset xrange [0:{:.6g}]\n"
      "set object 1 rectangle from 0, graph 0 to {:.6g}, graph 1 behind fillcolor rgb grey "
      "fillstyle transparent solid 0.18 noborder\n",
      gnuplot_quoted(fmt::format("all of the training ({})", cells[0]->setting())), longest, start);
  script += lines + "\nunset object 1\nunset ylabel\n";
  script += margins(kRightPanel) + kKeyBeside;
  script += fmt::format("set title \"the shaded start\"\nset xrange [0:{:.6g}]\n", start);
  script += lines_and_points + "\nunset multiplot\n";
  figure.panels = {names, names};
  return figure;
}

}  // namespace tandem

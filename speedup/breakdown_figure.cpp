#include "speedup/figure_scripts.h"

#include <fmt/format.h>

#include <algorithm>

#include "speedup/palette.h"
#include "speedup/table.h"

namespace tandem {
namespace {

constexpr std::size_t kBarsInOneLine = 8;  // with more bars, names would overlap

// One part of the stacked bars.
struct Part {
  std::string title, colour, fill;
  double left, right;  // relative to the bar's middle
  double Breakdown::*height;
};

}  // namespace

std::optional<GnuplotFigure> breakdown_figure(std::span<const Cell> setting) {
  const auto cells = done_cells(setting);
  if (cells.empty()) return {};
  const std::string solid = "solid 1 noborder";
  const Part parts[] = {
      {"compute", activity_colour("compute"), solid, -0.24, 0.24, &Breakdown::compute},
      {"compress", activity_colour("compress"), solid, -0.24, 0.24, &Breakdown::compress},
      {"communication, exposed", activity_colour("communicate"), solid, -0.24, 0.24,
       &Breakdown::exposed},
      {"other", activity_colour("wait"), solid, -0.24, 0.24, &Breakdown::other},
      {"communication, hidden", activity_colour("communicate"), "transparent pattern 4", 0.28, 0.44,
       &Breakdown::hidden}};
  GnuplotFigure figure{.name = "breakdown", .title = "Breakdown of an iteration", .height = 450};
  std::string& script = figure.script;
  std::string plots, names;
  std::vector<std::string> titles;
  std::vector<double> tops(cells.size());  // of the bars drawn so far
  // The middle of a wide bar. It moves to the left if a narrow bar stands to its right.
  const auto middle = [&](std::size_t i) {
    return static_cast<double>(i) - (cells[i]->breakdown.hidden > 0 ? 0.1 : 0);
  };
  for (std::size_t p = 0; p < std::size(parts); ++p) {
    const Part& part = parts[p];
    const bool beside = part.height == &Breakdown::hidden;
    script += fmt::format("$part{} << end\n", p);
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const double from = beside ? 0 : tops[i];
      const double to = from + cells[i]->breakdown.*part.height;
      const double x = middle(i);
      if (to > from)
        script += fmt::format("{:.6g} {:.6g} {:.6g} {:.6g} {:.6g}\n", x, x + part.left,
                              x + part.right, from, to);
      tops[i] = beside ? std::max(tops[i], to) : to;
    }
    script += "end\n";
    plots += fmt::format(
        "{}$part{} using 1:5:2:3:4:5 with boxxyerror fillstyle {} linecolor rgb \"{}\" title "
        "\"{}\"",
        p ? ", \\\n  " : "plot ", p, part.fill, part.colour, part.title);
    titles.push_back(part.title);
  }
  // Whiskers from the fastest to the slowest repeat.
  bool whiskers = false;
  script += "$repeats << end\n";
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const auto [least, most] = std::ranges::minmax(cells[i]->repeats_ms);
    if (cells[i]->repeats_ms.size() < 2) continue;
    whiskers = true;
    script += fmt::format("{:.6g} {:.6g} {:.6g}\n", middle(i), least, most - least);
    tops[i] = std::max(tops[i], most);
  }
  script += "end\n";
  if (whiskers) {
    plots +=
        ", \\\n  $repeats using 1:2:(0):3 with vectors heads size screen 0.004,90 linecolor rgb "
        "ink "
        "linewidth 1.5 title \"repeats\"";
    titles.push_back("from the fastest to the slowest repeat");
  }
  double highest = 0;
  std::string labels;
  const bool simulated = !cells[0]->simulated_ranks.empty();
  script += "$tops << end\n";
  for (std::size_t i = 0; i < cells.size(); ++i) {
    script += fmt::format("{:.6g} {:.6g} \"{} ms\" \"{}\"\n", middle(i), tops[i],
                          ms_text(cells[i]->iteration_ms()),
                          simulated ? "" : percent_text(cells[i]->test_accuracy));
    highest = std::max(highest, tops[i]);
    const std::string name = gnuplot_quoted(marked_name(*cells[i]));
    if (cells.size() > kBarsInOneLine)  // in two lines
      labels += fmt::format("set label {} at first {}, screen {} center textcolor rgb ink\n", name,
                            i, i % 2 == 0 ? 0.183 : 0.147);
    else
      names += fmt::format("{}{} {}", i ? ", " : "", name, i);
  }
  script += "end\n";
  // The space outside the outer bars. With few bars it grows, so that they do not become wider.
  const double space = std::max(0.6, (6.2 - static_cast<double>(cells.size())) / 2);
  script += fmt::format(
      "set title {}\n"
      "set ylabel \"milliseconds\"\nset xtics ({}) scale 0\n"
      "set xrange [{:.6g}:{:.6g}]\nset yrange [0:{:.6g}]\n"
      "set lmargin at screen 0.085; set rmargin at screen 0.985\n"
      "set bmargin at screen 0.22; set tmargin at screen 0.9\n"
      "set key at screen 0.53, screen 0.035 center bottom horizontal Left reverse samplen 1.5 "
      "width 2\n",
      gnuplot_quoted(fmt::format("mean iteration{} ({})",
                                 simulated ? "" : " and final test accuracy", cells[0]->setting())),
      names, -space, static_cast<double>(cells.size() - 1) + space, highest * 1.17);
  if (!labels.empty()) script += "unset xtics\n";
  script += labels + plots;
  script +=
      ", \\\n  $tops using 1:2:3 with labels offset 0,1.7 textcolor rgb ink"
      ", \\\n  $tops using 1:2:4 with labels offset 0,0.7 textcolor rgb ink\n";
  figure.panels = {titles};
  return figure;
}

}  // namespace tandem

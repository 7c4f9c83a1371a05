#include "apps/paper_figures/figure.h"

#include <fmt/format.h>

#include <algorithm>

#include "speedup/gnuplot.h"
#include "train/files.h"

namespace tandem {
namespace {

constexpr int kWidth = 1100, kRowHeight = 340, kTop = 10;
constexpr double kKey = 0.2;  // its share of the width

// Where a plot's axes are, as parts of the whole figure.
std::string margins(const Figure& figure, std::size_t plot) {
  const auto columns = static_cast<std::size_t>(figure.columns);
  const double rows = static_cast<double>((figure.plots.size() + columns - 1) / columns);
  const double width = (1 - kKey) / figure.columns, height = 1 / rows;
  const double left = width * static_cast<double>(plot % columns);
  const double top = 1 - height * static_cast<double>(plot / columns);
  return fmt::format(
      "set lmargin at screen {:.4f}; set rmargin at screen {:.4f}\n"
      "set tmargin at screen {:.4f}; set bmargin at screen {:.4f}\n",
      left + 0.062, left + width - 0.012, top - 0.1 * height, top - 0.82 * height);
}

std::string csv_of(const Figure& figure) {
  std::string csv = "plot,curve,x,y\n";
  for (const Plot& plot : figure.plots)
    for (const Curve& curve : plot.curves)
      for (const Point& p : curve.points)
        csv += fmt::format("\"{}\",\"{}\",{:.6g},{:.6g}\n", plot.title, curve.name, p.x, p.y);
  return csv;
}

}  // namespace

std::string ours(const std::string& colour) {
  return fmt::format("with linespoints linecolor rgb \"{}\" linewidth 2 pointtype 7 pointsize 0.5",
                     colour);
}
std::string formula(const std::string& colour) {
  return fmt::format("with lines linecolor rgb \"{}\" linewidth 1.5 dashtype (5,4)", colour);
}
std::string paper(const std::string& colour) {
  return fmt::format("with points linecolor rgb \"{}\" linewidth 2.5 pointtype 2 pointsize 1.1",
                     colour);
}
std::string line(const std::string& colour) {
  return fmt::format("with lines linecolor rgb \"{}\" linewidth 1.5", colour);
}

std::string x_tics(const std::vector<double>& all) {
  std::string tics;
  for (const double x : all) tics += fmt::format("{}\"{:g}\" {:g}", tics.empty() ? "" : ", ", x, x);
  return fmt::format("set xtics ({})\n", tics);
}

void draw(const Figure& figure, const std::filesystem::path& folder) {
  const auto rows = (std::ssize(figure.plots) + figure.columns - 1) / figure.columns;
  GnuplotFigure out{.name = figure.name,
                    .title = figure.title,
                    .width = kWidth,
                    .height = kTop + kRowHeight * static_cast<int>(rows)};
  std::vector<const Curve*> key;  // each name once
  for (const Plot& plot : figure.plots)
    for (const Curve& curve : plot.curves)
      if (std::ranges::none_of(key, [&](const Curve* c) { return c->name == curve.name; }))
        key.push_back(&curve);

  out.script = "set multiplot\nset offsets 0, 0, graph 0.05, 0\n";
  for (std::size_t i = 0; i < figure.plots.size(); ++i) {
    const Plot& plot = figure.plots[i];
    std::string plots;
    std::vector<std::string> names;
    for (std::size_t k = 0; k < plot.curves.size(); ++k) {
      const Curve& curve = plot.curves[k];
      const std::string block = fmt::format("$p{}_{}", i, k);
      out.script += block + " << end\n";
      for (const Point& p : curve.points) out.script += fmt::format("{:.6g} {:.6g}\n", p.x, p.y);
      if (curve.points.empty()) out.script += "NaN NaN\n";
      out.script += "end\n";
      plots += fmt::format("{}{} using 1:2 {}", k ? ", \\\n  " : "plot ", block, curve.style);
      names.push_back(curve.name);
    }
    out.script +=
        "unset logscale\nset xtics auto\nset xrange [*:*]\nset yrange [0:*]\n" +
        margins(figure, i) +
        fmt::format("set title {}\nset xlabel {}\nset ylabel {}\n{}", gnuplot_quoted(plot.title),
                    gnuplot_quoted(plot.x_label), gnuplot_quoted(plot.y_label), plot.settings);
    if (i + 1 == figure.plots.size()) {
      out.script += fmt::format(
          "set key at screen {:.3f}, screen 0.5 left center vertical Left reverse samplen 2.5 "
          "spacing 1.2\n",
          1 - kKey + 0.005);
      for (const Curve* curve : key)
        plots += fmt::format(", \\\n  NaN {} title {}", curve->style, gnuplot_quoted(curve->name));
    } else {
      out.script += "unset key\n";
    }
    out.script += plots + "\n";
    out.panels.push_back(names);
  }
  write_file(folder / (figure.name + ".csv"), csv_of(figure));
  draw_with_gnuplot(out, folder);
  std::filesystem::remove(folder / (figure.name + ".gp"));  // the CSV has the same numbers
}

}  // namespace tandem

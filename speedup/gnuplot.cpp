#include "speedup/gnuplot.h"

#include <fmt/format.h>

#include <string_view>

#include "base/error.h"
#include "speedup/child.h"
#include "speedup/html.h"
#include "speedup/palette.h"
#include "train/files.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

void run_gnuplot(const fs::path& folder, const std::string& script, const std::string& format) {
  try {
    run_program({"gnuplot", "-e", fmt::format("format = \"{}\"", format), script}, folder);
  } catch (const CannotStart&) {
    throw SystemError(
        "drawing figures needs gnuplot, which is not installed (Debian's package gnuplot-nox)");
  } catch (const SystemError& e) {
    throw SystemError("gnuplot (Debian's package gnuplot-nox) failed with {}: {}",
                      (folder / script).string(), e.what());
  }
}

// A colour as gnuplot writes it into SVG.
std::string rgb(std::string_view hex, fmt::format_string<int, int, int> format) {
  const auto part = [&](std::size_t at) {
    return std::stoi(std::string(hex.substr(at, 2)), nullptr, 16);
  };
  return fmt::format(format, part(1), part(3), part(5));
}
std::string fill(std::string_view hex) { return rgb(hex, "fill=\"rgb({},{},{})\""); }
std::string stroke(std::string_view hex) { return rgb(hex, "stroke='rgb({:3}, {:3}, {:3})'"); }

std::string style(const Theme& theme) {
  return fmt::format(
      ".ink {{ stroke: {0}; }}\n.ink-fill {{ fill: {0}; }}\n.grid {{ stroke: {1}; }}\n", theme.ink,
      theme.grid);
}

// Adapts an SVG for HTML pages: text, axes and grid take the colours of the page's scheme, ids do
// not clash with those of other figures, and curves get tooltips.
std::string fit_for_pages(std::string svg, const GnuplotFigure& figure) {
  replace_all(svg, " class=\"gridline\"", "");  // replaced by ours below
  replace_all(svg, fill(kLight.ink), fmt::format(R"(class="ink-fill" fill="{}")", kLight.ink));
  replace_all(svg, stroke(kLight.ink), fmt::format(R"(class="ink" stroke="{}")", kLight.ink));
  replace_all(svg, stroke(kLight.grid), fmt::format(R"(class="grid" stroke="{}")", kLight.grid));

  for (const char* before : {"id='", "='#", "url(#"})
    replace_all(svg, std::string(before) + "gp", before + figure.name + "_gp");
  for (const char* id : {"textbox", "greybox"})
    replace_all(svg, fmt::format("id='{}'", id), fmt::format("id='{}_{}'", figure.name, id));
  replace_all(svg, "gnuplot_canvas", figure.name + "_canvas");

  replace_all(svg, fmt::format("<title>{}</title>", figure.name),
              fmt::format("<title>{}</title>\n<style>\nsvg:root {{ color-scheme: light dark; }}\n{}"
                          "@media (prefers-color-scheme: dark) {{\n{}}}\n</style>",
                          escaped(figure.title), style(kLight), style(kDark)));
  for (std::size_t panel = 0; panel < figure.panels.size(); ++panel) {
    // The panels of a multiplot have letters.
    const std::string letter(figure.panels.size() > 1 ? 1 : 0, static_cast<char>('a' + panel));
    for (std::size_t i = 0; i < figure.panels[panel].size(); ++i)
      replace_all(svg, fmt::format("<title>{}_plot_{}{}</title>", figure.name, i + 1, letter),
                  fmt::format("<title>{}</title>", escaped(figure.panels[panel][i])));
  }
  // Labels and entries of the key need no tooltips.
  const std::string rest = fmt::format("<title>{}_plot_", figure.name), end = "</title>";
  for (std::size_t at; (at = svg.find(rest)) != std::string::npos;)
    svg.erase(at, svg.find(end, at) + end.size() - at);
  return svg;
}

}  // namespace

std::string gnuplot_quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\' || c == '`') quoted += '\\';  // it would run what is in backticks
    quoted += c == '\n' ? ' ' : c;
  }
  return quoted + "\"";
}

void draw_with_gnuplot(const GnuplotFigure& figure, const fs::path& folder) {
  const std::string file = figure.name + ".gp";
  // The PNG has twice the pixels, to be sharp on high-resolution screens.
  write_file(folder / file,
             fmt::format(
                 R"(# gnuplot {0}.gp makes {0}.svg; gnuplot -e 'format = "png"' {0}.gp makes {0}.png
if (!exists("format")) format = "svg"
if (format eq "svg") {{
  set terminal svg size {1},{2} dynamic noenhanced font "sans-serif,14" name "{0}"
}} else {{
  set terminal pngcairo size {3},{4} noenhanced font "sans,21" linewidth 2 pointscale 3 dashlength 1.6
}}
set output "{0}.".format
ink = "{5}"
grid = "{6}"
grey = "{7}"
set border 3 linecolor rgb ink
set tics nomirror scale 0.5 textcolor rgb ink
set grid ytics linecolor rgb grid linetype 1 linewidth 1
set key textcolor rgb ink noautotitle
set title textcolor rgb ink
set xlabel textcolor rgb ink
set ylabel textcolor rgb ink offset 1,0
{8})",
                 figure.name, figure.width, figure.height, 2 * figure.width, 2 * figure.height,
                 kLight.ink, kLight.grid, kGrey, figure.script));
  for (const char* format : {"svg", "png"}) run_gnuplot(folder, file, format);
  const fs::path svg = folder / (figure.name + ".svg");
  write_file(svg, fit_for_pages(read_file(svg), figure));
}

}  // namespace tandem

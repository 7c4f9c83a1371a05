// Runs gnuplot, and adapts its SVG for HTML pages.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tandem {

struct GnuplotFigure {
  std::string name;   // of the files, without extension
  std::string title;  // for screen readers
  int width = 960, height = 420;
  std::string script;  // without `set terminal` and `set output`
  // The names of what each panel plots, in the script's order, for tooltips.
  std::vector<std::vector<std::string>> panels;
};

// The text as a quoted string of a gnuplot script.
std::string gnuplot_quoted(const std::string& text);

// Writes NAME.gp, NAME.svg and NAME.png into the folder. Scripts can use three colours: `ink` for
// text and axes, `grid` for the grid, and `grey`. In the SVG the first two follow the page's colour
// scheme. Throws SystemError if gnuplot is missing or fails.
void draw_with_gnuplot(const GnuplotFigure& figure, const std::filesystem::path& folder);

}  // namespace tandem

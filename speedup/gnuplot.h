// Runs gnuplot, and makes its SVG fit into pages.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tandem {

struct GnuplotFigure {
  std::string name;   // of the files
  std::string title;  // for screen readers
  int width = 960, height = 420;
  std::string script;  // without terminal and output
  // What each panel plots, in the script's order: tooltips.
  std::vector<std::vector<std::string>> panels;
};

// A word or sentence in a script.
std::string gnuplot_quoted(const std::string& text);

// Writes NAME.gp, NAME.svg and NAME.png into the folder. In scripts, `ink` is the colour of text
// and axes, `grid` of a grid; in the SVG they change with the page's colour scheme. `grey` does
// not. Throws SystemError if gnuplot is missing or fails.
void draw_with_gnuplot(const GnuplotFigure& figure, const std::filesystem::path& folder);

}  // namespace tandem

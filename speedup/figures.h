// Figures of a comparison, drawn by gnuplot as SVG (for light and dark pages) and PNG (on white).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "speedup/results.h"

namespace tandem {

struct FigureName {
  std::string kind;     // accuracy, breakdown, links or workers
  std::string setting;  // of the cells in it; empty for a figure of all settings
  std::string file;     // without extension: the kind, plus a suffix for all but the first setting
};

// All figures that can be drawn: "accuracy" and "breakdown" for each link and number of workers,
// "links" if there are several links, "workers" if there are several numbers of workers. Failed
// cells are left out.
std::vector<FigureName> figures_of(const Results& results);

// Writes FILE.gp, a script with its data, FILE.svg and FILE.png for each of figures_of(). Throws
// SystemError if gnuplot is missing or fails.
void draw_figures(const Results& results, const std::filesystem::path& folder);

}  // namespace tandem

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
  std::string file;     // without its ending; the kind, and for later settings more
};

// What there is to draw: "accuracy" and "breakdown" of each link and number of workers, "links" and
// "workers" where there is more than one of them. Cells that failed are left out.
std::vector<FigureName> figures_of(const Results& results);

// Writes FILE.gp, a script with its data, FILE.svg and FILE.png for each of figures_of(). Throws
// SystemError if gnuplot is missing or fails.
void draw_figures(const Results& results, const std::filesystem::path& folder);

}  // namespace tandem

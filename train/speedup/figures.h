// Figures of a comparison, drawn by gnuplot as SVG (for light and dark pages) and PNG (on white).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "train/speedup/results.h"

namespace tandem {

// What there is to draw: "accuracy" and "breakdown" of the first link and number of workers,
// "links" and "workers" where there is more than one of them. Cells that failed are left out.
std::vector<std::string> figures_of(const Results& results);

// Writes NAME.gp, a script with its data, NAME.svg and NAME.png for each of figures_of(). Throws
// SystemError if gnuplot is missing or fails.
void draw_figures(const Results& results, const std::filesystem::path& folder);

}  // namespace tandem

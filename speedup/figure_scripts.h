// The gnuplot scripts of the figures, one source file for each kind, and what they share.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "speedup/gnuplot.h"
#include "speedup/results.h"

namespace tandem {

// Each returns nothing if there is nothing to draw. `setting`: the cells of one setting.
std::optional<GnuplotFigure> accuracy_figure(const Results& results, std::span<const Cell> setting);
// How far the objective (--objective) is above results.optimum.
std::optional<GnuplotFigure> gap_figure(const Results& results, std::span<const Cell> setting);
std::optional<GnuplotFigure> breakdown_figure(std::span<const Cell> setting);
std::optional<GnuplotFigure> links_figure(const Results& results);
std::optional<GnuplotFigure> workers_figure(const Results& results);

// The cells that are done.
std::vector<const Cell*> done_cells(std::span<const Cell> setting);

// An algorithm's line and points. Lines differ in more than colour.
std::string line_style(const std::string& name, const std::string& compress);
std::string point_style(const std::string& compress);

// For reference values.
inline constexpr const char* kReferenceLine = "linecolor rgb grey linewidth 1.5 dashtype (6,5)";

// Two panels side by side; the right one leaves space for the key.
struct Panel {
  double left, right;
};
inline constexpr Panel kLeftPanel{0.08, 0.42}, kRightPanel{0.475, 0.815};
std::string margins(const Panel& panel);
inline constexpr const char* kKeyBeside =
    "set key at screen 0.835, screen 0.5 left center vertical Left reverse samplen 2 spacing "
    "1.15\n";

}  // namespace tandem

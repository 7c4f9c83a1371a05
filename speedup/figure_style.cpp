#include "speedup/figure_scripts.h"

#include <fmt/format.h>

#include <string_view>

#include "speedup/palette.h"

namespace tandem {
namespace {

// One dash and one marker for each compressor; codecs have other colours.
std::string dash(std::string_view compress) {
  return compress == "quant8" ? "(3,3)" : compress == "trunc16" ? "(9,4)" : "solid";
}
int marker(std::string_view compress) {
  return compress == "quant8" ? 9 : compress == "trunc16" ? 5 : compress == "none" ? 7 : 13;
}

}  // namespace

std::vector<const Cell*> done_cells(std::span<const Cell> setting) {
  std::vector<const Cell*> done;
  for (const Cell& cell : setting)
    if (cell.done()) done.push_back(&cell);
  return done;
}

std::string line_style(const std::string& name, const std::string& compress) {
  return fmt::format("linecolor rgb \"{}\" linewidth 2 dashtype {}", algorithm_colour(name),
                     dash(compress));
}

std::string point_style(const std::string& compress) {
  return fmt::format("pointtype {} pointsize 0.8", marker(compress));
}

std::string margins(const Panel& panel) {
  return fmt::format(
      "set lmargin at screen {}; set rmargin at screen {}\n"
      "set bmargin at screen 0.15; set tmargin at screen 0.9\n",
      panel.left, panel.right);
}

}  // namespace tandem

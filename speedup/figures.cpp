#include "speedup/figures.h"

#include <fmt/format.h>

#include <cctype>
#include <utility>

#include "speedup/figure_scripts.h"

namespace tandem {
namespace {

using Figures = std::vector<std::pair<FigureName, GnuplotFigure>>;

// A suffix for file names, such as "_2_10gbe".
std::string suffix(const Cell& cell) {
  std::string text = fmt::format("_{}_{}", cell.workers, cell.link);
  for (char& c : text)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return text;
}

Figures all_figures(const Results& results) {
  Figures figures;
  const auto add = [&](std::optional<GnuplotFigure> figure, const std::string& setting,
                       const std::string& more) {
    if (!figure) return;
    const std::string kind = figure->name;
    figure->name += more;
    figures.push_back({{.kind = kind, .setting = setting, .file = figure->name}, *figure});
  };
  bool first = true;
  for (const auto cells : results.settings()) {
    const std::string more = std::exchange(first, false) ? "" : suffix(cells[0]);
    add(accuracy_figure(results, cells), cells[0].setting(), more);
    add(gap_figure(results, cells), cells[0].setting(), more);
    add(breakdown_figure(cells), cells[0].setting(), more);
  }
  add(links_figure(results), "", "");
  add(workers_figure(results), "", "");
  return figures;
}

}  // namespace

std::vector<FigureName> figures_of(const Results& results) {
  std::vector<FigureName> names;
  for (const auto& [name, figure] : all_figures(results)) names.push_back(name);
  return names;
}

void draw_figures(const Results& results, const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  for (const auto& [name, figure] : all_figures(results)) draw_with_gnuplot(figure, folder);
}

}  // namespace tandem

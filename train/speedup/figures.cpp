#include "train/speedup/figures.h"

#include "train/speedup/figure_scripts.h"

namespace tandem {
namespace {

std::vector<GnuplotFigure> all_figures(const Results& results) {
  std::vector<GnuplotFigure> figures;
  for (const auto make : {accuracy_figure, breakdown_figure, links_figure, workers_figure})
    if (auto figure = make(results)) figures.push_back(*figure);
  return figures;
}

}  // namespace

std::vector<std::string> figures_of(const Results& results) {
  std::vector<std::string> names;
  for (const GnuplotFigure& figure : all_figures(results)) names.push_back(figure.name);
  return names;
}

void draw_figures(const Results& results, const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  for (const GnuplotFigure& figure : all_figures(results)) draw_with_gnuplot(figure, folder);
}

}  // namespace tandem

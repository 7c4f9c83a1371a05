#include "speedup/earlier_results.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace tandem {

void keep_others(const Results& earlier, Results& now) {
  for (const Cell& cell : earlier.cells) {
    const bool asked_for = std::ranges::any_of(now.cells, [&](const Cell& other) {
      return other.name == cell.name && other.setting() == cell.setting();
    });
    if (cell.done() && !asked_for) now.cells.push_back(cell);
  }
  std::vector<std::string> settings;
  for (const Cell& cell : now.cells) settings.push_back(cell.setting());
  const std::vector<Algorithm> rows = rows_of(now.cells);
  std::ranges::stable_sort(now.cells, {}, [&](const Cell& cell) {
    return std::pair(std::ranges::find(settings, cell.setting()) - settings.begin(),
                     std::ranges::find(rows, cell.name, &Algorithm::name) - rows.begin());
  });
}

}  // namespace tandem

// A picture of what the threads of all ranks did during two iterations. It shows which
// communication is hidden behind which computation.
#pragma once

#include <span>
#include <string>

#include "speedup/results.h"

namespace tandem {

// For an HTML page. Each rank has two rows: its compute thread above its communication thread.
// Empty if the cell has no timeline.
std::string timeline_svg(const Cell& cell);

// Worker 0 of each of the cells, below each other, on one time scale. Empty if no cell has a
// timeline.
std::string timelines_on_one_scale(std::span<const Cell> cells);

// A paragraph of HTML that explains the colours, for all timelines of a page.
std::string timeline_legend();

}  // namespace tandem

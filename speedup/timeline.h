// A picture of what the threads of all ranks did during two iterations: one sees which
// communication is hidden behind which computation.
#pragma once

#include <span>
#include <string>

#include "speedup/results.h"

namespace tandem {

// For a page of HTML: for each worker, and the server, the compute thread's row above the
// communication thread's row. Empty if the cell has no timeline.
std::string timeline_svg(const Cell& cell);

// Worker 0 of each of the cells, below each other and on one scale of time. Empty if none of them
// has a timeline.
std::string timelines_on_one_scale(std::span<const Cell> cells);

// What the colours mean: a paragraph of HTML, for all timelines of a page.
std::string timeline_legend();

}  // namespace tandem

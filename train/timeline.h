// A worker's timeline as letters for a terminal: what --timeline prints.
#pragma once

#include <cstdint>
#include <string>

#include "dist/timing/rank_report.h"

namespace tandem {

// Two iterations of a worker that has recorded its spans: a row for each of its threads, a time
// scale and a legend, in lines of `width` characters. It shows two consecutive iterations whose
// time is close to the mean (`mean_ms` per iteration). They come from the second half of the
// iterations that are not cold, without the last one, in which the pipeline drains. Fewer if the
// run has fewer; empty if it has none.
std::string timeline_text(const RankReport& worker, std::int64_t cold, double mean_ms,
                          std::size_t width);

// The width of the terminal that standard output is; 80 if it is not a terminal.
std::size_t output_width();

}  // namespace tandem

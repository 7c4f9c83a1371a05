// The timeline of a worker as letters, for a terminal: what --timeline prints.
#pragma once

#include <cstdint>
#include <string>

#include "dist/timing/rank_report.h"

namespace tandem {

// Two iterations of a worker that has kept its spans, a row for each of its threads, with a time
// scale and a legend, in lines of `width` characters. They are two in a row that took about as long
// as the mean (milliseconds of an iteration), from the second half of those that are not cold, but
// not the last one, in which things end. Fewer where there were fewer; empty without any.
std::string timeline_text(const RankReport& worker, std::int64_t cold, double mean_ms,
                          std::size_t width);

// Characters in a line of the terminal that standard output is; 80 if it is none.
std::size_t output_width();

}  // namespace tandem

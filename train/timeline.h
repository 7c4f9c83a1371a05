// Timelines: as letters for a terminal, and as a file for a browser.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dist/timing/rank_report.h"
#include "train/summary.h"

namespace tandem {

// What --timeline prints: two iterations of a worker that has recorded its spans. There is a row
// for each of its threads, a time scale and a legend, in lines of `width` characters. It shows two
// consecutive iterations whose time is close to the mean (`mean_ms` per iteration). They come from
// the second half of the iterations that are not cold, without the last one, in which the pipeline
// drains. Fewer if the run has fewer; empty if it has none. They fill the lines, unless
// `ms_per_letter` sets the scale: then what does not fit is cut off.
std::string timeline_text(const RankReport& worker, std::int64_t cold, double mean_ms,
                          std::size_t width, double ms_per_letter = 0);

// The width of the terminal that standard output is; 80 if it is not a terminal.
std::size_t output_width();

// The timeline of a run in the Chrome trace format, for chrome://tracing and ui.perfetto.dev. Each
// rank appears as a process, with its compute thread above its communication thread. If the run has
// a plan, worker 0's communication thread shows it at the first iteration that follows it.
std::string to_chrome_trace(const Summary& summary);

}  // namespace tandem

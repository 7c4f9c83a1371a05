// The timeline of a run in the Chrome trace format: chrome://tracing and ui.perfetto.dev show it.
// A rank is a process there; its compute thread is the upper row, its communication thread the
// lower one.
#pragma once

#include <string>
#include <vector>

#include "dist/timing/rank_report.h"

namespace tandem {

std::string to_chrome_trace(const std::vector<RankReport>& reports);

}  // namespace tandem

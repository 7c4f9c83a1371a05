// The timeline of a run in the Chrome trace format, for chrome://tracing and ui.perfetto.dev. Each
// rank appears as a process, with its compute thread above its communication thread.
#pragma once

#include <string>
#include <vector>

#include "dist/timing/rank_report.h"

namespace tandem {

std::string to_chrome_trace(const std::vector<RankReport>& reports);

}  // namespace tandem

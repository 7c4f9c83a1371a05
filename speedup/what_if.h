// The report's sliders: what if the network were faster, or the workers more?
#pragma once

#include <string>

#include "speedup/results.h"

namespace tandem {

// Lets the reader choose bandwidth, latency and workers among those of the finished cells, and
// shows the throughput and the iteration time of each algorithm there. Empty if there is little to
// choose from: fewer than three settings. Needs kWhatIfStyle and kWhatIfScript.
std::string what_if_html(const Results& results);

}  // namespace tandem

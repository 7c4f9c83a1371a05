// What ranks measure, and what rank 0 collects from the others at the end of a run.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "dist/communication.h"
#include "dist/timing/rank_report.h"

namespace tandem {

// What every rank has measured, servers included. Empty on all ranks except rank 0. `own` says what
// kind of rank this is and what it had sent before a checkpoint; `compute` has the spans of its
// compute thread.
std::vector<RankReport> gather_reports(Communication& communication, RankReport own,
                                       const Spans& compute);

// Saves or loads what a rank has measured on its communication thread. `sent_before` is what it had
// sent before the checkpoint that the run continues from; loading sets it.
void visit_measurements(State& state, Communication& communication, std::int64_t& sent_before);

// The images that any worker has skipped. Complete on rank 0 only.
std::set<std::string> gather_skipped(Communication& communication, int workers,
                                     const DataSplit& data);

}  // namespace tandem

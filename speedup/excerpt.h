// The part of a trace that a report shows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "speedup/results.h"

namespace tandem {

// What all threads do while rank 0 computes two iterations: of all pairs in the trace, which
// --trace wrote of so many iterations, the one that takes nearest to twice `mean_ms`, without the
// first ones and the last, in which things begin and end. Spans that are too short to be seen are
// put together.
std::vector<TimelineSpan> excerpt(const std::string& trace, std::int64_t iterations, int workers,
                                  double mean_ms);

}  // namespace tandem

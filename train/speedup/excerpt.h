// The part of a trace that a report shows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/speedup/results.h"

namespace tandem {

// What all threads do while rank 0 computes the two iterations before the last one, in which things
// end. The trace is what --trace wrote of so many iterations. Spans that are too short to be seen
// are put together.
std::vector<TimelineSpan> excerpt(const std::string& trace, std::int64_t iterations, int workers);

}  // namespace tandem

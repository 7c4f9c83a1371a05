// The part of a trace that a report shows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "speedup/results.h"

namespace tandem {

// The spans of all threads while rank 0 computes two consecutive iterations. `trace` is what
// --trace wrote for `iterations` iterations. The pair is the one whose time is closest to twice
// `mean_ms`. The first iterations and the last are left out, because the pipeline fills and drains
// in them. Spans that are too short to be seen are merged.
std::vector<TimelineSpan> excerpt(const std::string& trace, std::int64_t iterations, int workers,
                                  double mean_ms);

}  // namespace tandem

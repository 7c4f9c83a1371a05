// The part of a trace that a report shows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "speedup/results.h"

namespace tandem {

// The spans of all threads while rank 0 computes two consecutive iterations. `trace` is what
// --trace wrote for `iterations` iterations. The pair is the one whose time is closest to twice
// `mean_ms`, of the second half. In the first half, pipelines fill and algorithms measure before
// they choose their messages; in the last iteration, pipelines drain. Spans that are too short to
// be seen are merged, and a wait inside another span interrupts it.
std::vector<TimelineSpan> excerpt(const std::string& trace, std::int64_t iterations, int workers,
                                  double mean_ms);

}  // namespace tandem

// A rank's measurements, sent to rank 0 at the end.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "dist/timing/spans.h"
#include "dist/transport/collectives.h"

namespace tandem {

struct RankReport {
  int rank = 0;
  bool server = false;
  std::int64_t bytes_sent = 0;  // gradients and weights, over all iterations
  std::array<double, kSpanNames.size()> compute_s{}, communication_s{};  // by SpanKind
  std::vector<Spans::Span> compute_spans, communication_spans;           // by rank 0's clock

  double compute(SpanKind kind) const { return compute_s[static_cast<std::size_t>(kind)]; }
  double communication(SpanKind kind) const {
    return communication_s[static_cast<std::size_t>(kind)];
  }
  // All time except waiting for others.
  double computing() const;
  double communicating() const;

  void take(const Spans& compute, const Spans& communication, Clock::duration to_rank_0);
};

Bytes to_bytes(const RankReport& report);
RankReport rank_report_from(const Bytes& bytes);

}  // namespace tandem

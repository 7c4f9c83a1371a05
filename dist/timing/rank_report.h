// A rank's measurements, sent to rank 0 at the end.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "dist/compress/measured.h"
#include "dist/timing/spans.h"
#include "dist/transport/collectives.h"

namespace tandem {

// How long a worker computes for each parameter, measured with --profile.
struct ComputeProfile {
  struct Tensor {
    std::int64_t parameter;        // its index
    double forward_s, backward_s;  // medians
  };
  std::vector<Tensor> tensors;       // trained ones, in the order of use
  double mean_s = 0;                 // of an iteration, in total
  std::vector<double> iterations_s;  // of single iterations; in a long run, not of all
};

struct RankReport {
  int rank = 0;
  bool server = false;
  std::int64_t bytes_sent = 0;  // gradients and weights, over all iterations
  std::array<double, kSpanNames.size()> compute_s{}, communication_s{};  // by SpanKind
  std::vector<Spans::Span> compute_spans, communication_spans;           // by rank 0's clock
  // Both are empty without --profile.
  ComputeProfile computing_by_tensor;
  HostWork host;

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

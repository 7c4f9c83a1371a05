#include "dist/ring_allreduce/plan.h"

#include <algorithm>

namespace tandem {

std::vector<RingStep> ring_plan(int rank, int ranks) {
  std::vector<RingStep> plan;
  const int steps = 2 * (ranks - 1);
  for (int s = 0; s < steps; ++s) {
    const auto share = [&](int back) { return ((rank - back) % ranks + ranks) % ranks; };
    plan.push_back(
        {.phase = s < ranks - 1 ? RingStep::Phase::reduce_scatter : RingStep::Phase::all_gather,
         .send_share = share(s + 1),
         .receive_share = share(s + 2),
         .completes = s == ranks - 2});
  }
  return plan;
}

std::vector<RingPart> ring_parts(std::size_t all, std::size_t enough) {
  std::vector<RingPart> parts;
  for (std::size_t first = 0; first < all; first += parts.back().size) {
    const std::size_t left = all - first, more = std::max<std::size_t>(1, left / enough);
    parts.push_back({first, (left + more - 1) / more});
  }
  return parts;
}

}  // namespace tandem

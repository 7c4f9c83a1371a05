// The ring as data: what one rank sends and receives, step by step.
//
// The flat gradient has p shares, one per rank (dist/block.h). Share c starts its way at rank c+1,
// visits every rank once and ends at its owner, rank c, where its sum is complete: reduce-scatter,
// p-1 steps. Then the sums make one more round: all-gather, p-1 steps. In every step each rank
// sends to its right neighbour what it has received from its left one in the step before.
//
//   p = 4, reduce-scatter: which share each rank sends     all-gather
//            rank 0   rank 1   rank 2   rank 3               rank 0   rank 1   rank 2   rank 3
//   step 0     3        0        1        2         step 3     0        1        2        3
//   step 1     2        3        0        1         step 4     3        0        1        2
//   step 2     1        2        3        0         step 5     2        3        0        1
//
// Every rank sends (p-1)/p of the gradient in each half: 2(p-1)/p·n bytes and 2(p-1) steps in all.
#pragma once

#include <cstddef>
#include <vector>

namespace tandem {

struct RingStep {
  enum class Phase { reduce_scatter, all_gather };
  Phase phase;
  int send_share;     // to rank + 1
  int receive_share;  // from rank - 1; it is sent on in the next step
  bool completes;     // the sum of the received share is complete: this rank is its owner
};

// For one rank among `ranks`; empty for one rank alone.
std::vector<RingStep> ring_plan(int rank, int ranks);

// Segments of every share, by number, that go round at the same time.
struct RingPart {
  std::size_t first, size;
};

// `all` segments in as many parts as there can be with no less than `enough` in each; in one part
// if there are not enough for two. They are about as long, and none is longer than the one before.
std::vector<RingPart> ring_parts(std::size_t all, std::size_t enough);

}  // namespace tandem

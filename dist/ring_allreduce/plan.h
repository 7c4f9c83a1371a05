// The ring as data: all that one rank does, move by move.
//
// The flat gradient has p shares, one per rank (dist/block.h). Share c starts at rank c+1, visits
// every rank once and ends at its owner, rank c, where its sum is complete: reduce-scatter. Then
// the sum makes one more round: all-gather. In every step each rank has one share in hand. It sends
// that share to its right neighbour, and receives the next one from its left neighbour.
//
//   p = 4           which share each rank has in hand
//            rank 0   rank 1   rank 2   rank 3
//   step 0     3        0        1        2       its own values: sends them
//   step 1     2        3        0        1       receives a partial sum, adds its values, sends it
//   step 2     1        2        3        0       likewise
//   step 3     0        1        2        3       likewise; the sum is complete, at its owner
//   step 4     3        0        1        2       receives a complete sum, keeps it, sends it on
//   step 5     2        3        0        1       likewise
//   step 6     1        2        3        0       receives a complete sum, keeps it
//
// Every rank sends (p-1)/p of the gradient in each half: 2(p-1)/p·n bytes in 2(p-1) steps.
//
// A share travels in segments, a message each, so that one is added while the next one is on its
// way. Segments go round in parts, some of every share at a time: while the sums of one part are
// gathered, the next part is reduced.
#pragma once

#include <cstddef>
#include <vector>

#include "dist/block.h"
#include "tensor/staging.h"

namespace tandem {

struct Move {
  int step;             // 0 … 2(p-1)
  int share;            // in hand
  std::size_t segment;  // of that share, among the segments of the plan

  bool receives;   // from the left neighbour; otherwise the segment has this rank's own values
  bool adds;       // this rank's values to what it received
  bool sends;      // the result to the right neighbour
  bool completes;  // the result is the complete sum
};

// How finely shares are cut. The sum does not depend on it.
struct Pipelining {
  std::int64_t segment = kBlock;  // elements; the last one of a share may have fewer
  std::int64_t in_part = 1;       // segments of each share that go round together, at least
};

struct RingPlan {
  // In the order in which this rank needs its own values. All shares have as many; some may be
  // empty, and nothing is sent then.
  std::vector<Segment> segments;
  // In the order in which this rank makes them. All ranks make the same steps in the same order.
  std::vector<Move> moves;
  std::size_t part = 0;  // segments of each share in a part, at least
  std::size_t step = 0;  // moves from one step of a segment to the next, at most
};

RingPlan ring_plan(int rank, int ranks, const BlockRange& range, const Pipelining& how);

// The properties of a network that decide how shares are cut.
struct NetworkTraits {
  std::size_t bytes_in_flight = 0;   // that keep it busy
  std::size_t shortest_segment = 0;  // bytes; 0: short ones do no harm
};

// `block_bytes` is the size of a compressed block; `divides_blocks` says whether a message may
// begin and end within a block.
Pipelining pipelining(const BlockRange& range, int ranks, std::size_t block_bytes,
                      bool divides_blocks, const NetworkTraits& network);

}  // namespace tandem

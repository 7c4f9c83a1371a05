// The ring as data: everything that one rank does, move by move.
//
// The flat gradient has p shares, one per rank (dist/block.h). In the reduce-scatter, share c
// starts at rank c+1, visits every rank once and ends at its owner, rank c, where its sum is
// complete. In the all-gather, the sum makes one more round. In every step each rank has one share
// in hand. It sends that share to its right neighbour, and receives the next one from its left
// neighbour.
//
//   p = 4           which share each rank has in hand
//            rank 0   rank 1   rank 2   rank 3
//   step 0     3        0        1        2       sends its own values
//   step 1     2        3        0        1       receives a partial sum, adds its values, sends it
//   step 2     1        2        3        0       the same
//   step 3     0        1        2        3       the same; the owner now has the complete sum
//   step 4     3        0        1        2       receives a complete sum, keeps it, sends it on
//   step 5     2        3        0        1       the same
//   step 6     1        2        3        0       receives a complete sum, keeps it
//
// Every rank sends (p-1)/p of the gradient in each half: 2(p-1)/p·n bytes in 2(p-1) steps.
//
// A share is sent in segments, one message each, so that a rank adds one segment while the next is
// in flight. A long gradient is sent in parts. Each part has some segments of every share. While
// the sums of one part are gathered, the next part is reduced.
#pragma once

#include <cstddef>
#include <vector>

#include "dist/block.h"
#include "tensor/staging.h"

namespace tandem {

struct Move {
  int step;             // 0 … 2(p-1)
  int share;            // in hand
  std::size_t segment;  // index into RingPlan::segments

  bool receives;   // from the left neighbour; if not, the move begins with this rank's own values
  bool adds;       // adds this rank's values to the received ones
  bool sends;      // the result to the right neighbour
  bool completes;  // the result is the complete sum

  std::size_t awaits;  // the move whose message must have arrived as well; usually this one
};

// How shares are cut into messages. The sum does not depend on it.
struct Pipelining {
  std::int64_t segment = kBlock;  // elements; a share's last segment may have fewer
  std::int64_t in_part = 1;       // minimum number of segments of each share in a part
  bool step_by_step = false;      // a share is sent on only when all of it has been received
};

struct RingPlan {
  // In the order in which this rank needs its own values. All shares have equally many segments.
  // Empty ones are not sent.
  std::vector<Segment> segments;
  // In the order in which this rank makes them. The order of steps is the same on all ranks.
  std::vector<Move> moves;
  std::size_t part = 0;  // minimum number of segments of each share in a part
  std::size_t step = 0;  // maximum number of moves from one step of a segment to its next step
};

RingPlan ring_plan(int rank, int ranks, const BlockRange& range, const Pipelining& how);

// The properties of a network that decide how shares are cut.
struct NetworkTraits {
  std::size_t bytes_in_flight = 0;  // enough to keep it busy
  std::size_t latency_bytes = 0;    // as many as it carries in one latency, for a sum that takes
                                    // a + bM; 0: for the shortest time
};

// `block_bytes` is the size of a compressed block; `divides_blocks` says whether a message may
// begin and end within a block.
Pipelining pipelining(const BlockRange& range, int ranks, std::size_t block_bytes,
                      bool divides_blocks, const NetworkTraits& network);

}  // namespace tandem

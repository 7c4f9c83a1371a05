// Who owns what. The flat gradient consists of blocks of 2,048 elements, and block b belongs to
// rank b mod p. The owner's right neighbour begins the sum of a block, the others add their values
// in the order of the ring, and the owner completes it.
//
//   flat gradient   |b0|b1|b2|b3|b4|b5|b6|b7|b8|b9|…
//   owner, p = 3      0  1  2  0  1  2  0  1  2  0
//   a bucket                |‾‾‾‾‾‾‾‾‾‾‾|                  blocks 2 … 5
//   its shares              share 0: b3   share 1: b4   share 2: b2 b5
//
// The owner depends on a block's place in the whole flat gradient and on nothing else. So no
// schedule changes the result by a single bit, whatever travels together. Any range of
// blocks is spread evenly: ranks own equally many of them, up to one. So a ring takes a + bM for M
// bytes, wherever they lie.
//
// A message carries blocks of one share. In the gradient they lie p blocks apart; in the message
// they are contiguous.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tandem {

inline constexpr std::int64_t kBlock = 2048;  // elements

inline int owner(std::int64_t block, int ranks) { return static_cast<int>(block % ranks); }

// Consecutive elements of a flat gradient: a bucket, or all of it.
struct BlockRange {
  std::int64_t count = 0;        // elements; whole blocks, except the last one of the gradient
  std::int64_t first_block = 0;  // where it begins, in the flat gradient

  std::int64_t blocks() const { return (count + kBlock - 1) / kBlock; }

  // The blocks that `share` owns of it, counted from the first block of the range: first_of(), and
  // every ranks-th block from there.
  std::int64_t first_of(int share, int ranks) const {
    return (share - first_block % ranks + ranks) % ranks;
  }
  std::int64_t blocks_of(int share, int ranks) const {
    return std::max<std::int64_t>(0, (blocks() - first_of(share, ranks) + ranks - 1) / ranks);
  }
};

}  // namespace tandem

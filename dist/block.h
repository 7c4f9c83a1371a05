// Which rank owns what. The flat gradient consists of blocks of 2,048 elements, and rank b mod p
// owns block b. The owner's right neighbour begins the sum of a block, the other ranks add their
// values in the order of the ring, and the owner completes the sum.
//
//   flat gradient   |b0|b1|b2|b3|b4|b5|b6|b7|b8|b9|…
//   owner, p = 3      0  1  2  0  1  2  0  1  2  0
//   a bucket                |‾‾‾‾‾‾‾‾‾‾‾|                  blocks 2 … 5
//   its shares              share 0: b3   share 1: b4   share 2: b2 b5
//
// The owner depends only on a block's place in the whole flat gradient. So no schedule changes the
// result by a single bit, whichever blocks are sent together. Ranks own equally many blocks of any
// range, give or take one. So a ring takes equally long, wherever the range begins.
//
// A message carries blocks of one share. In the gradient these blocks are p blocks apart; in the
// message they are contiguous.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tandem {

inline constexpr std::int64_t kBlock = 2048;  // elements

// Into how many parts of this length a whole is divided; the last may be shorter.
inline std::int64_t parts(std::int64_t whole, std::int64_t part) {
  return (whole + part - 1) / part;
}

inline int owner(std::int64_t block, int ranks) { return static_cast<int>(block % ranks); }

// Consecutive elements of a flat gradient: a bucket, or all of it.
struct BlockRange {
  std::int64_t count = 0;        // elements; whole blocks, except the gradient's last one
  std::int64_t first_block = 0;  // where the range begins in the flat gradient

  std::int64_t first() const { return first_block * kBlock; }  // its first element
  std::int64_t blocks() const { return parts(count, kBlock); }

  // The blocks of this range that `share` owns, counted from the beginning of the range:
  // first_of(), and every ranks-th block after it.
  std::int64_t first_of(int share, int ranks) const {
    return (share - first_block % ranks + ranks) % ranks;
  }
  std::int64_t blocks_of(int share, int ranks) const {
    return std::max<std::int64_t>(0, parts(blocks() - first_of(share, ranks), ranks));
  }
};

}  // namespace tandem

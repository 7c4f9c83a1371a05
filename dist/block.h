// The flat gradient is cut into blocks. A block is the unit of ownership in a reduction and of the
// scale in quantization; its last one may be short.
//
// Block b belongs to share b mod p of p: in a ring of p ranks the share is the rank that completes
// the block's sum, its owner. It depends on the block's place in the flat gradient alone, never on
// what else travels in the same message, and so does the order in which the ranks' values are
// added. That is why no schedule changes the result by a single bit.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace tandem {

inline constexpr std::int64_t kBlock = 2048;  // elements

inline std::int64_t blocks_of(std::int64_t count) { return (count + kBlock - 1) / kBlock; }

template <class T>
std::span<T> block_of(std::span<T> flat, std::int64_t block) {
  const auto begin = static_cast<std::size_t>(block * kBlock);
  return flat.subspan(begin, std::min(static_cast<std::size_t>(kBlock), flat.size() - begin));
}

// Which rank's gradient is added at place `position` (0 … ranks-1) to the sum of a block: the
// owner's neighbour begins, the owner ends. A ring gives this order by itself; everybody else who
// adds must keep it.
inline int rank_at(std::int64_t position, std::int64_t block, int ranks) {
  return static_cast<int>((block + 1 + position) % ranks);
}

// Consecutive blocks of a share that travel in one message.
struct Segment {
  std::int64_t first = 0, step = 1;  // block numbers: first, first + step, …
  std::int64_t blocks = 0;

  std::int64_t block(std::int64_t i) const { return first + i * step; }
};

// Share `index` of `shares`, cut into segments of at most `blocks` blocks.
inline std::vector<Segment> segments_of_share(std::int64_t count, int shares, int index,
                                              std::int64_t blocks) {
  std::vector<Segment> segments;
  for (std::int64_t b = index; b < blocks_of(count); b += blocks * shares) {
    const std::int64_t left = (blocks_of(count) - b + shares - 1) / shares;
    segments.push_back({.first = b, .step = shares, .blocks = std::min(blocks, left)});
  }
  return segments;
}

// Elements of a segment of a flat buffer of `count`.
inline std::int64_t count_of(const Segment& segment, std::int64_t count) {
  if (segment.blocks == 0) return 0;
  const std::int64_t last = segment.block(segment.blocks - 1);
  return (segment.blocks - 1) * kBlock + std::min(kBlock, count - last * kBlock);
}

}  // namespace tandem

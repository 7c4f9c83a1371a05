// The flat gradient is cut into blocks, the unit of the scale in quantization; consecutive blocks
// make segments, which travel in one message each; and segments go round to the shares of a
// gradient in turn, one share per rank of a ring. The share's rank is the owner: its neighbour
// begins the sum of a block, the others add their values on the way, and the owner completes it.
//
//   flat gradient  |b0 b1|b2 b3|b4 b5|b6 b7|b8 b9|b10 b11|…     blocks of 2,048 elements
//   segment           0     1     2     3     4      5
//   owner of 3        0     1     2     0     1      2
//
// All of that depends on a block's place in the whole flat gradient (and on how long that is),
// never on what travels at the same time: who sends a part of it cuts the whole and takes the part.
// That is why no schedule changes the result by a single bit.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

namespace tandem {

inline constexpr std::int64_t kBlock = 2048;  // elements

// How a gradient of `count` elements is cut for `shares` shares.
class Cut {
 public:
  // For a ring.
  Cut(std::int64_t count, int shares)
      : Cut(count, shares, std::clamp<std::int64_t>(count / kBlock / shares / 16, 32, 128)) {}
  Cut(std::int64_t count, int shares, std::int64_t most_blocks)
      : count_(count),
        shares_(shares),
        segment_(kBlock * segment_blocks(parts(count, kBlock), shares, most_blocks)) {}

  std::int64_t count() const { return count_; }
  int shares() const { return shares_; }
  std::int64_t segments() const { return parts(count_, segment_); }
  std::int64_t segment_length() const { return segment_; }  // elements; the last may be shorter
  std::int64_t longest_segment() const { return std::min(segment_, count_); }
  std::int64_t elements_of(std::int64_t segment) const {
    return std::min(segment_, count_ - segment * segment_);
  }

  int share_of_segment(std::int64_t segment) const { return static_cast<int>(segment % shares_); }
  int share_of_element(std::int64_t i) const { return share_of_segment(i / segment_); }
  std::int64_t segments_of_share(int share) const {
    return parts(std::max<std::int64_t>(0, segments() - share), shares_);
  }
  // The segment that is number `i` of its share.
  std::int64_t segment_of_share(int share, std::int64_t i) const { return share + i * shares_; }

  // The elements of a segment in a flat buffer.
  template <class T>
  std::span<T> of(std::span<T> flat, std::int64_t segment) const {
    const std::int64_t begin = segment * segment_;
    return flat.subspan(static_cast<std::size_t>(begin),
                        static_cast<std::size_t>(std::min(segment_, count_ - begin)));
  }

 private:
  static std::int64_t parts(std::int64_t whole, std::int64_t part) {
    return (whole + part - 1) / part;
  }

  // A share has two segments at least, for one to be added while the next one is on its way, and
  // not many more: every message costs time, and MPI exchanges three for each that is longer than
  // some 8 KB. Short shares go in single blocks, which are just below that; those of a ring that
  // are longer than 4 MB, in segments of up to 1 MB. All shares have about as much.
  static std::int64_t segment_blocks(std::int64_t blocks, int shares, std::int64_t most) {
    const std::int64_t per_share = parts(blocks, shares);
    if (per_share <= 8) return 1;
    return parts(blocks, shares * std::max<std::int64_t>(2, parts(per_share, most)));
  }

  std::int64_t count_;
  int shares_;
  std::int64_t segment_;  // elements
};

}  // namespace tandem

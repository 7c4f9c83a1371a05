#include "dist/ring_allreduce/plan.h"

#include <algorithm>
#include <limits>

namespace tandem {
namespace {

constexpr std::int64_t kPiece = kBlock / 8;  // elements; the shortest part of a block that is sent

// Segment k of a share.
Segment segment(int share, std::int64_t k, int ranks, const BlockRange& range,
                const Pipelining& how) {
  // Elements begin … end of the share, whose blocks are counted back to back.
  const std::int64_t blocks = range.blocks_of(share, ranks), first = range.first_of(share, ranks);
  const std::int64_t last = first + (blocks - 1) * ranks;
  const std::int64_t short_by =
      blocks > 0 ? std::max<std::int64_t>(0, (last + 1) * kBlock - range.count) : 0;
  const std::int64_t begin = k * how.segment;
  const std::int64_t end = std::min(begin + how.segment, blocks * kBlock - short_by);
  if (begin >= end) return {.step = kBlock};
  return {.first = (first + begin / kBlock * ranks) * kBlock + begin % kBlock,
          .count = end - begin,
          .step = ranks * kBlock};
}

}  // namespace

RingPlan ring_plan(int rank, int ranks, const BlockRange& range, const Pipelining& how) {
  RingPlan plan;
  const std::int64_t longest_share = std::min(parts(range.blocks(), ranks) * kBlock, range.count);
  const std::int64_t segments = std::max<std::int64_t>(1, parts(longest_share, how.segment));
  const std::int64_t most_parts = std::max<std::int64_t>(1, segments / how.in_part);
  const auto first_of = [&](std::int64_t part) { return part * segments / most_parts; };
  const auto share_in_hand = [&](int step) { return (rank + 2 * ranks - 1 - step) % ranks; };

  // The first p steps visit all shares. Each step needs this rank's values of one share.
  std::vector<std::vector<std::size_t>> numbers(static_cast<std::size_t>(ranks));  // by share
  for (std::int64_t part = 0; part < most_parts; ++part)
    for (int step = 0; step < ranks; ++step)
      for (std::int64_t k = first_of(part); k < first_of(part + 1); ++k) {
        numbers[static_cast<std::size_t>(share_in_hand(step))].push_back(plan.segments.size());
        plan.segments.push_back(segment(share_in_hand(step), k, ranks, range, how));
      }

  const auto take_step = [&](int step, std::int64_t part) {
    const int share = share_in_hand(step);
    const std::size_t last =
        plan.moves.size() + static_cast<std::size_t>(first_of(part + 1) - first_of(part)) - 1;
    for (std::int64_t k = first_of(part); k < first_of(part + 1); ++k)
      plan.moves.push_back(
          {.step = step,
           .share = share,
           .segment = numbers[static_cast<std::size_t>(share)][static_cast<std::size_t>(k)],
           .receives = step > 0,
           .adds = step > 0 && step < ranks,
           .sends = step < 2 * (ranks - 1),
           .completes = step >= ranks - 1,
           .awaits = how.step_by_step ? last : plan.moves.size()});
  };
  for (std::int64_t part = 0; part <= most_parts; ++part)
    for (int step = 0; step < ranks; ++step) {
      if (part > 0 && step < ranks - 1) take_step(ranks + step, part - 1);  // all-gather
      if (part < most_parts) take_step(step, part);                         // reduce-scatter
    }
  plan.part = static_cast<std::size_t>(segments / most_parts);
  plan.step = static_cast<std::size_t>(parts(segments, most_parts) * (most_parts > 1 ? 2 : 1));
  return plan;
}

namespace {

// A share has at least two segments, so that a rank adds one while the next is in flight. It does
// not have many more, because every message costs time: MPI exchanges three messages for each one
// that is longer than about 8 KB. Shares of up to 8 blocks are sent block by block, and an
// uncompressed block has 8 KB. Longer shares have segments of up to 32 blocks (256 KB). For shares
// of more than 4 MB, this limit grows with the share, up to 128 blocks (1 MB).
Pipelining fast_pipelining(const BlockRange& range, int ranks, std::size_t block_bytes,
                           std::size_t bytes_in_flight, std::int64_t most_segments) {
  const std::int64_t blocks = range.blocks(), per_share = parts(blocks, ranks);
  const std::int64_t longest = std::clamp<std::int64_t>(blocks / ranks / 16, 32, 128);
  const std::int64_t wanted =
      per_share <= 8 ? per_share : std::max<std::int64_t>(2, parts(per_share, longest));
  const std::int64_t segments = std::clamp<std::int64_t>(wanted, 1, most_segments);
  const std::int64_t length = std::max<std::int64_t>(1, parts(per_share, segments));
  const std::size_t bytes = static_cast<std::size_t>(length) * block_bytes;
  return {.segment = length * kBlock,
          .in_part = std::max<std::int64_t>(1, static_cast<std::int64_t>(bytes_in_flight / bytes))};
}

// Pipelining hides latencies: a sum takes the longer of 2(p-1)·α and 2(p-1)/p·βM, not their sum. So
// it is used only for shares that take thirty latencies or more, for which α hardly counts. For
// shorter shares, a step begins when the step before has ended, and a sum takes 2(p-1)·(α + βM/p).
// Several messages per step let a rank add one while the one before is sent.
//
// If some shares are one block longer than others, this matters for shares of a few blocks. Then
// the longest share is sent in several messages without waiting for the end of a step. The first
// takes 2(p-1)·(α + β·segment), and the last arrives β·(longest - segment) later. The segment's
// length is chosen so that the sum takes the same total time.
Pipelining linear_pipelining(const BlockRange& range, int ranks, std::size_t block_bytes,
                             bool divides_blocks, const NetworkTraits& network) {
  const std::int64_t per_share = parts(range.blocks(), ranks);
  const std::size_t share_bytes = static_cast<std::size_t>(per_share) * block_bytes;
  const std::size_t latencies = share_bytes / network.latency_bytes;
  if (latencies >= 30)
    return fast_pipelining(range, ranks, block_bytes, network.bytes_in_flight,
                           static_cast<std::int64_t>(latencies / 15));
  if (per_share > 8) {
    const std::int64_t length = std::max<std::int64_t>(8, parts(per_share, 8));
    return {.segment = length * kBlock, .in_part = parts(per_share, length), .step_by_step = true};
  }
  const std::int64_t unit = divides_blocks ? kPiece : kBlock;
  const std::int64_t longest = std::min(per_share * kBlock, range.count);
  const std::int64_t segment =
      (2 * (ranks - 1) * range.count / ranks - longest) / std::max(1, 2 * ranks - 3);
  const std::int64_t length = std::max(unit, (segment + unit / 2) / unit * unit);  // nearest
  return {.segment = length, .in_part = std::max<std::int64_t>(1, parts(longest, length))};
}

}  // namespace

Pipelining pipelining(const BlockRange& range, int ranks, std::size_t block_bytes,
                      bool divides_blocks, const NetworkTraits& network) {
  if (network.latency_bytes > 0)
    return linear_pipelining(range, ranks, block_bytes, divides_blocks, network);
  return fast_pipelining(range, ranks, block_bytes, network.bytes_in_flight,
                         std::numeric_limits<std::int64_t>::max());
}

}  // namespace tandem

#include "dist/compress/hop.h"

#include <algorithm>
#include <array>

#include "dist/block.h"

namespace tandem {

void add_received(const Compressor& compressor, const Segment& segment,
                  std::span<const std::byte> received, const ConstPieces& own,
                  std::span<std::byte> sum, ThreadPool* helpers) {
  constexpr std::int64_t kPart = 8 * kBlock;
  const std::int64_t head = segment.head(kBlock);  // a block ends here, then every kBlock
  run_ranges(helpers, segment.count, kPart, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin, next = 0; i < end; i = next) {
      next = std::min(end, i < head ? head : i + kBlock - (i - head) % kBlock);
      const std::size_t first = compressor.bytes(i), bytes = compressor.bytes(next - i);
      compressor.add_packed(received.subspan(first, bytes), own.at(first, bytes), next - i,
                            sum.subspan(first, bytes));
    }
  });
}

void add_in_order(const Compressor& compressor, std::span<const ConstPieces> ranks, int owner,
                  std::size_t first, std::int64_t count, std::span<std::byte> sum) {
  const auto values_of = [&](std::size_t hop) {
    return ranks[(static_cast<std::size_t>(owner) + hop) % ranks.size()].at(first, sum.size());
  };
  // Partial sums are not stored in `sum`, because it may hold a rank's values that are not added
  // yet.
  alignas(64) std::array<std::byte, kBlock * sizeof(float)> memory;
  const std::span<std::byte> partial = std::span(memory).first(sum.size());
  std::span<const std::byte> so_far = values_of(1);
  for (std::size_t hop = 2; hop <= ranks.size(); ++hop) {
    const auto out = hop < ranks.size() ? partial : sum;
    compressor.add_packed(so_far, values_of(hop), count, out);
    so_far = out;
  }
  if (ranks.size() == 1) compressor.copy(so_far, sum);
}

void add_blocks(const Compressor& compressor, std::span<const ConstPieces> ranks,
                std::int64_t first_block, std::int64_t count, const Pieces& sum,
                ThreadPool* helpers) {
  run_ranges(helpers, count, kBlock, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t at = begin; at < end; at += kBlock) {
      const std::int64_t n = std::min(kBlock, end - at);
      add_in_order(compressor, ranks,
                   owner(first_block + at / kBlock, static_cast<int>(ranks.size())),
                   compressor.bytes(at), n, sum.at(compressor.bytes(at), compressor.bytes(n)));
    }
  });
}

}  // namespace tandem

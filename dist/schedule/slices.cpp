#include "dist/schedule/slices.h"

#include <algorithm>

namespace tandem {
namespace {

constexpr std::int64_t kDivided = 1'000'000;  // elements, in P3's paper

}  // namespace

std::vector<Slice> slices_of(const std::vector<Stage>& stages,
                             const std::vector<const Parameter*>& use, std::int64_t size) {
  std::vector<Slice> slices;
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    const BlockRange& all = stages[stage].range;
    const std::int64_t pieces = parts(all.blocks(), std::max<std::int64_t>(1, size / kBlock));
    for (std::int64_t i = 0; i < pieces; ++i) {
      const std::int64_t first = i * all.blocks() / pieces, end = (i + 1) * all.blocks() / pieces;
      const BlockRange range{.count = std::min(all.count, end * kBlock) - first * kBlock,
                             .first_block = all.first_block + first};
      const auto urgent = std::ranges::find_if(
          use, [&](const Parameter* parameter) { return overlap(range, *parameter); });
      slices.push_back({.stage = stage, .range = range, .rank = urgent - use.begin()});
    }
  }
  return slices;
}

// MXNet chooses the adder in the same way.
std::vector<Slice> whole_stages(const std::vector<Stage>& stages, int adders) {
  std::vector<Slice> slices;
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    const BlockRange& range = stages[stage].range;
    const int one = static_cast<int>(stage * 9973 % static_cast<std::size_t>(adders));
    slices.push_back(
        {.stage = stage, .range = range, .adder = range.count < kDivided ? one : Slice::kAll});
  }
  return slices;
}

std::vector<Slice> in_order(std::vector<Slice> slices) {
  for (Slice& slice : slices) slice.rank = 0;
  return slices;
}

SliceSums::SliceSums(const StrategyContext& context)
    : c_(context), transport_(context.communication.transport()) {}

void SliceSums::has_begun(std::size_t stages) {
  if (begun_in_iteration_++ == 0)
    c_.communication.post(summed_, [this] { return run(), Summed{}; });
  else
    transport_.wake();
  if (begun_in_iteration_ == stages) begun_in_iteration_ = 0;
}

}  // namespace tandem

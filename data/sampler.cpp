#include "data/sampler.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/random.h"

namespace tandem {

Part part_of(std::int64_t count, std::int64_t parts, std::int64_t i) {
  const std::int64_t size = count / parts, longer = count % parts;
  const std::int64_t begin = i * size + std::min(i, longer);
  return {begin, begin + size + (i < longer ? 1 : 0)};
}

std::vector<std::int64_t> shuffled_order(std::int64_t size, std::uint64_t seed,
                                         std::int64_t epoch) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  Random random = Random(seed, Purpose::order).split(static_cast<std::uint64_t>(epoch));
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

std::int64_t BatchPlan::batches_per_epoch() const {
  return drop_last ? samples / batch : (samples + batch - 1) / batch;
}

Part BatchPlan::part(std::int64_t b) const {
  const std::int64_t begin = b * batch;
  const Part mine = part_of(std::min(batch, samples - begin), workers, rank);
  return {begin + mine.begin, begin + mine.end};
}

}  // namespace tandem

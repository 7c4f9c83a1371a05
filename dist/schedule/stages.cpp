#include "dist/schedule/stages.h"

#include <algorithm>

#include "base/error.h"

namespace tandem {

std::vector<Stage> stages_of(const ParameterSet& parameters,
                             const std::vector<const Parameter*>& ready) {
  const std::int64_t count = parameters.values().count();
  // For every block, the position in `ready` of the last parameter in it.
  std::vector<std::size_t> last(static_cast<std::size_t>(parts(count, kBlock)), 0);
  for (std::size_t i = 0; i < ready.size(); ++i) {
    const std::int64_t first = ready[i]->offset, end = first + ready[i]->shape.count();
    for (std::int64_t block = first / kBlock; block < parts(end, kBlock); ++block) {
      std::size_t& latest = last[static_cast<std::size_t>(block)];
      latest = std::max(latest, i);
    }
  }
  std::vector<Stage> stages;
  std::size_t latest = 0;
  std::int64_t end = std::ssize(last);
  const auto close = [&](std::int64_t first) {
    if (first == end) return;
    stages.push_back(
        {.range = {.count = std::min(count, end * kBlock) - first * kBlock, .first_block = first},
         .last = ready[latest]});
    end = first;
  };
  for (std::int64_t block = end - 1; block >= 0; --block) {
    const std::size_t own = last[static_cast<std::size_t>(block)];
    if (own > latest) close(block + 1);
    latest = std::max(latest, own);
  }
  close(0);
  return stages;
}

std::optional<std::size_t> StagesInOrder::ready(const Parameter& parameter) {
  if (stages_.empty()) {
    order_.push_back(&parameter);
    return {};
  }
  require(order_.at(parameters_ready_++) == &parameter, "backward has finished {} out of order",
          parameter.name);
  if (all_ready() || stages_[stages_ready_].last != &parameter) return {};
  return stages_ready_++;
}

}  // namespace tandem

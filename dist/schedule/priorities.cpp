#include "dist/schedule/priorities.h"

#include <algorithm>
#include <map>
#include <queue>
#include <utility>

namespace tandem {
namespace {

// When each stage is summed, if one lane carries these journeys.
void travel(std::vector<const Journey*> journeys, const std::vector<double>& ready,
            std::vector<double>& summed) {
  const auto ready_of = [&](const Journey* j) { return ready[j->stage]; };
  std::ranges::stable_sort(journeys, {}, ready_of);
  using Waiting = std::pair<std::int64_t, std::size_t>;  // rank, index
  std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>> waiting;
  double now = 0;
  for (std::size_t next = 0; next < journeys.size() || !waiting.empty();) {
    if (waiting.empty()) now = std::max(now, ready_of(journeys[next]));
    for (; next < journeys.size() && ready_of(journeys[next]) <= now; ++next)
      waiting.push({journeys[next]->rank, next});
    const Journey& journey = *journeys[waiting.top().second];
    waiting.pop();
    now += journey.occupies;
    summed[journey.stage] = std::max(summed[journey.stage], now + journey.delay);
  }
}

}  // namespace

double iteration_with_priorities(const ComputeTimes& compute,
                                 const std::vector<Journey>& journeys) {
  std::map<int, std::vector<const Journey*>> lanes;
  for (const Journey& journey : journeys) lanes[journey.lane].push_back(&journey);
  std::vector<double> summed = compute.ready;
  for (auto& [lane, of_lane] : lanes) travel(std::move(of_lane), compute.ready, summed);

  const double end = *std::ranges::max_element(compute.ready);
  double late = 0;  // how much the next iteration is behind one without waits
  std::vector<bool> updated(compute.ready.size());
  for (const ComputeTimes::Use& use : compute.uses) {
    if (updated[use.stage]) continue;
    updated[use.stage] = true;
    late = std::max(late, summed[use.stage] - end - use.begins) + compute.update_of[use.stage];
  }
  return end + late;
}

// In the time in which a ring moves M bytes, every worker sends 2(p-1)/p·M.
std::vector<Journey> journeys_of(const std::vector<Slice>& slices, const SumCost& cost, Via via,
                                 int workers, int adders) {
  const double p = workers, others = std::max(1, workers - 1);
  const double per_byte = cost.b * p / (2 * others);  // of one worker's link
  const double latencies = cost.a / others;           // to an adder and back
  const bool divided =
      std::ranges::all_of(slices, [](const Slice& slice) { return slice.adder == Slice::kAll; });
  const int lanes = divided ? 1 : adders;
  std::vector<Journey> journeys;
  for (const Slice& slice : slices) {
    const double bytes = static_cast<double>(slice.range.count) * sizeof(float);
    const bool whole = slice.adder != Slice::kAll;  // one adder adds all of it
    Journey journey{.stage = slice.stage, .rank = slice.rank, .delay = latencies};
    if (via == Via::ring) {
      journey.occupies = cost(bytes);
      journey.delay = 0;
    } else if (whole) {  // the adder's link carries all workers' values
      journey.occupies = (via == Via::direct ? others : p) * per_byte * bytes;
      journey.delay += latencies + journey.occupies;  // asking for the sum, and its way back
    } else if (via == Via::direct) {
      journey.occupies = cost.b * bytes;
    } else {
      journey.occupies = std::max(1.0, p / adders) * per_byte * bytes;
    }
    // A worker's own link carries every slice that a server adds.
    if (via == Via::servers && whole)
      journeys.push_back({slice.stage, slice.rank, per_byte * bytes, 0, adders});
    const int last = whole ? slice.adder : lanes - 1;
    for (journey.lane = whole ? slice.adder : 0; journey.lane <= last; ++journey.lane)
      journeys.push_back(journey);
  }
  return journeys;
}

}  // namespace tandem

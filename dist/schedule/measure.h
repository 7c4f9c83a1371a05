// Measures what a merging depends on: when backward finishes each stage, and what sums cost.
#pragma once

#include <vector>

#include "base/clock.h"
#include "base/queue.h"
#include "dist/schedule/merge.h"
#include "dist/strategy.h"

namespace tandem {

// A GPU records the third step of a run. The steps after it are measured.
inline constexpr std::int64_t kFirstMeasured = 4, kLastMeasured = 6;

// When an iteration reaches its stages, such as when backward finishes them. The compute thread
// makes all calls.
class StageTimes {
 public:
  explicit StageTimes(Communication& communication) : communication_(communication) {}

  void begin_step() { begin_ = Clock::now(); }
  // The next stage is reached when the event has passed; null: now. A GPU's events are waited for
  // by the communication thread, which must have nothing else to do.
  void reached(const EventPtr& event);
  // Call it when all stages are reached.
  void end_step();

  // Seconds since the start of an iteration, by stage: the median over the iterations, and the mean
  // over the workers. All workers must make this call.
  std::vector<double> of_all(int workers);

 private:
  Communication& communication_;
  Clock::time_point begin_;
  std::size_t noted_ = 0;
  BlockingQueue<Clock::time_point> times_;
  std::vector<std::vector<double>> seconds_;  // by iteration, by stage
};

// Sums parts of the gradient, which may be overwritten, over all workers: from one block to all.
// All workers must make this call.
SumCost measure_sum_cost(const StrategyContext& context);

}  // namespace tandem

// Measures what a merging depends on: when backward finishes each stage, and what sums cost.
#pragma once

#include <vector>

#include "base/clock.h"
#include "base/queue.h"
#include "dist/schedule/merge.h"
#include "dist/strategy.h"

namespace tandem {

// When the stages of an iteration become ready. The compute thread makes all calls.
class ReadyTimes {
 public:
  explicit ReadyTimes(Communication& communication) : communication_(communication) {}

  void begin_step() { begin_ = Clock::now(); }
  // The next stage is ready when the event has passed; null: now. A GPU's events are waited for by
  // the communication thread, which must have nothing else to do.
  void stage_ready(const EventPtr& event);
  // Call it when all stages are ready.
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

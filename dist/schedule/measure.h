// Measures what a merge plan depends on: when backward finishes each stage, and what sums cost.
#pragma once

#include <vector>

#include "base/clock.h"
#include "base/queue.h"
#include "dist/schedule/merge.h"
#include "dist/strategy.h"

namespace tandem {

// On a GPU, the third step of a run is recorded (train/step_runner.h). The steps after it are
// measured.
inline constexpr std::int64_t kFirstMeasured = 4, kLastMeasured = 6;
// On a CPU, the next steps are measured while gradients are sent, because communication then takes
// time from computation. (On a GPU it does not, and the communication thread cannot note times
// while it sends.)
inline constexpr std::int64_t kLastMeasuredSending = 9;

// Records when an iteration reaches each stage, for example when backward finishes it. The compute
// thread makes all calls.
class StageTimes {
 public:
  explicit StageTimes(Communication& communication) : communication_(communication) {}

  void begin_step() { begin_ = Clock::now(), left_out_ = {}; }
  // Does not count this much of the time since then, for the stages that are reached later.
  void leave_out(Clock::duration duration) { left_out_ += duration; }
  // The next stage is reached when the event passes, or now if it is null. The communication thread
  // waits for a GPU's events, so it must have nothing else to do.
  void reached(const EventPtr& event);
  // Call it when all stages are reached.
  void end_step();

  // Seconds since the start of an iteration, by stage: of the slowest worker, for which sums wait,
  // and the median over the iterations since the last call. All workers must make this call.
  std::vector<double> of_slowest(int workers);

 private:
  Communication& communication_;
  Clock::time_point begin_;
  Clock::duration left_out_{};
  std::size_t noted_ = 0;
  BlockingQueue<Clock::time_point> times_;
  std::vector<std::vector<double>> seconds_;  // by iteration, by stage
};

// Times sums over all workers, from one block to the whole gradient. Overwrites the gradient. All
// workers must make this call.
SumCost measure_sum_cost(const StrategyContext& context);

}  // namespace tandem

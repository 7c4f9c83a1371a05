// Synchronous SGD that communicates during backward. The flat gradient is cut into buckets. As soon
// as backward has finished a bucket, the communication thread sums it over all workers, while the
// compute thread continues with the layers before it. After backward, the workers wait for the
// buckets one by one and update their weights. README.md has the picture.
//
// The algorithms wfbp, buckets, mg-wfbp and merge differ only in their buckets (merge.h). Cutting
// does not change a sum by a single bit (dist/block.h), so all of them have the weights of d-sync.
//
// The buckets depend on the order in which backward finishes the parameters; those of mg-wfbp and
// merge also depend on measured times. So the first iterations have a single bucket, like d-sync.
// On a CPU, three more have a bucket per stage. They show how much communication slows backward
// down. All four algorithms measure, in order to predict the time of an iteration. If a plan
// is given (StrategyContext::plan), it replaces the measurement and is used from the second
// iteration on.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "base/queue.h"
#include "dist/gradient_sum.h"
#include "dist/schedule/measure.h"
#include "dist/schedule/merge.h"
#include "dist/schedule/stages.h"
#include "dist/strategy.h"

namespace tandem {

// Which layers are sent together.
using Merging = Groups (*)(const Layers& layers, const SumCost& cost,
                           const StrategyOptions& options);

class Overlap : public Strategy {
 public:
  // Throws UserError if the given plan is for a gradient of another size. The first
  // after_backward() throws if it is for another net of the same size.
  Overlap(const StrategyContext& context, Merging merging);

  void before_step(std::int64_t t) override;
  void on_grad_ready(Parameter& parameter) override;
  bool wants_ready_events() const override { return true; }
  void after_backward(std::int64_t t) override;
  void after_test() override { times_.begin_step(); }
  CommunicationPlan plan() const override { return plan_; }
  // A plan that was made is used again.
  void visit(State& state) override;

 private:
  struct Bucket {
    GradientSum sum;
    BlockRange range;
    const Parameter* last;  // the parameter that completes it; null: it begins after backward
  };

  void start_next(const EventPtr& ready);
  void end_measured_step();
  void use_given_plan();
  void measure_plan();
  void switch_to(MergePlan plan);
  void cut(const Groups& groups);

  StrategyContext c_;
  Merging merging_;
  StagesInOrder stages_;
  std::deque<Bucket> buckets_;    // in the order in which they become ready
  BlockingQueue<Gradient> sums_;  // in the same order

  // Of this iteration.
  std::int64_t t_ = 0, step_ = 0;  // step_ counts from 1, since this object was made
  bool measures_ = false;
  std::size_t buckets_started_ = 0;

  StageTimes times_;
  // Of the measured iterations with one bucket.
  double backward_s_ = 0;  // when backward ends; 0 on a GPU, where sending does not slow it down
  double update_s_ = 0;
  bool planned_ = false;
  MergePlan loaded_;
  CommunicationPlan plan_;
};

}  // namespace tandem

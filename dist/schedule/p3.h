// P3: priority-based parameter propagation (Jayarajan et al., 2019). Gradients travel in slices,
// and those of the first layers overtake the others, because the next forward pass needs the first
// layers first. No worker waits at the end of an iteration: forward waits for each layer
// separately.
//
// The baseline of P3's paper, ps-wfbp, differs in two points. Its slices are whole layers, sent in
// the order in which backward finishes them. And a sum is sent only to a worker that requests it.
//
// The weights are those of d-sync, bit for bit. direct_sum.h and ring_sums.h send and add the
// slices.
#pragma once

#include <memory>
#include <vector>

#include "dist/gradient_sum.h"
#include "dist/schedule/direct_sum.h"
#include "dist/schedule/measure.h"
#include "dist/schedule/priorities.h"
#include "dist/schedule/slices.h"
#include "dist/schedule/stages.h"
#include "dist/strategy.h"

namespace tandem {

// What differs between p3 and ps-wfbp.
struct Propagation {
  std::vector<Slice> (*cut)(const StrategyContext& context, const std::vector<Stage>& stages,
                            const std::vector<const Parameter*>& use, int adders);
  bool on_request = false;  // see Adders
};

Via via(const StrategyOptions& given);  // the value of --via

// The ranks that add, according to the options.
Adders adders_of(const StrategyContext& context, bool on_request);

class P3 : public Strategy {
 public:
  P3(const StrategyContext& context, const Propagation& propagation);

  void before_step(std::int64_t t) override;
  void before_use(Parameter& parameter) override;
  bool needs_before_use() const override { return true; }
  void on_grad_ready(Parameter& parameter) override;
  bool wants_ready_events() const override { return true; }
  void after_backward(std::int64_t t) override;
  void settle() override;
  void before_test() override { apply_all(); }
  void after_test() override { begin_times(); }
  void finish() override { apply_all(); }
  CommunicationPlan plan() const override { return plan_; }
  void visit(State& state) override;

 private:
  void begin_times();
  void leave_out(Clock::duration duration);  // from the times
  void end_measured_step();
  void note_use(const Parameter& parameter);
  void switch_to_slices();
  void predict();
  void take();
  void apply(std::size_t stage);
  void apply_loaded();
  void apply_all();

  StrategyContext c_;
  Propagation propagation_;
  std::int64_t t_ = 0, step_ = 0;  // step_ counts from 1, since this object was made

  // The first iterations are d-sync's. They show in which order parameters are used and become
  // ready, and on a GPU also when. On a CPU, the next three show when: slices are sent in them, and
  // slow computation down.
  std::unique_ptr<GradientSum> whole_;
  std::vector<const Parameter*> used_;
  StagesInOrder stages_;
  bool measures_ = false;  // in this iteration
  std::size_t uses_ = 0;   // in this iteration
  StageTimes use_times_, ready_times_;
  double update_s_ = 0;  // of all weights

  std::vector<std::vector<std::size_t>> stages_of_parameter_;  // by index
  std::unique_ptr<SliceSums> sums_;
  std::vector<Journey> journeys_;  // of the slices, for predictions
  // The update that a stage's weights still need.
  struct Update {
    enum class Is { applied, in_flight, summed };
    Is is = Is::applied;
    std::int64_t iteration = 0;
    std::vector<EventPtr> ready;
  };
  std::vector<Update> updates_;  // by stage
  // The loaded iteration whose sum is in the flat gradient, but not applied yet. 0: none.
  std::int64_t not_applied_ = 0;
  int communicating_ = 0;  // iterations whose communication is not over
  CommunicationPlan plan_;
};

}  // namespace tandem

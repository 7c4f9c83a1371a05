// --profile: measures what a simulation must know of this run (dist/timing/profile.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "autograd/hooks.h"
#include "autograd/parameter.h"
#include "base/clock.h"
#include "dist/timing/profile.h"
#include "dist/timing/rank_report.h"
#include "train/summary.h"

namespace tandem {

// Stands between a CPU's net and the strategy's hooks, and notes when forward and backward reach
// each parameter. Its clock runs only while the worker computes: time in the strategy, which waits
// and sends, does not count. The compute thread makes all calls.
class Profiler : public Hooks {
 public:
  explicit Profiler(Hooks& hooks) : hooks_(hooks) {}

  void before_use(Parameter& parameter) override;
  void on_grad_ready(Parameter& parameter) override;
  bool needs_before_use() const override { return hooks_.needs_before_use(); }
  bool wants_ready_events() const override { return hooks_.wants_ready_events(); }

  // An iteration: begin, pause() and resume() around the strategy's calls, and ends. Computing
  // between the beginning and the first use of a parameter counts for that parameter.
  void begin_iteration();
  void pause();
  void resume();
  void end_forward();
  void end_iteration();
  // Forgets all iterations so far.
  void restart();

  // Without tensors if there was no iteration.
  ComputeProfile measured() const;

 private:
  struct Tensor {
    std::int64_t parameter = -1;
    std::int64_t seen = 0;             // the number of the last iteration that used it
    double used_at = 0, ready_at = 0;  // seconds of computing in the iteration
  };
  Tensor& tensor_of(const Parameter& parameter);
  double now() const { return seconds_of(computed_); }
  std::vector<double> seconds_by_tensor() const;
  void keep(std::vector<double> sample);

  Hooks& hooks_;
  bool in_iteration_ = false;
  std::int64_t number_ = 0;
  Clock::time_point resumed_;
  Clock::duration computed_{};  // in this iteration
  double forward_end_ = 0;
  std::vector<Tensor> tensors_;        // in the order of first use
  std::vector<std::size_t> position_;  // in tensors_, by the parameter's index; or kNone

  double total_s_ = 0;
  std::int64_t iterations_ = 0;
  // Of every `every_`-th iteration: forward of each tensor, then backward of each.
  std::vector<std::vector<double>> samples_;
  std::int64_t every_ = 1;
};

// The profile of a run, from the reports of its ranks. It has no tensors if no iteration was timed.
Profile profile_of(const Summary& summary, const ParameterSet& parameters);

}  // namespace tandem

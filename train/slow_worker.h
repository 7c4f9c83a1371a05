// --slow-rank: a worker that computes more slowly than the others, as on an older or a busy
// machine.
#pragma once

#include <optional>
#include <string>

#include "autograd/hooks.h"
#include "base/clock.h"

namespace tandem {

struct SlowRank {
  int rank = 0;
  double speed = 1;  // compared with the other workers, above 0 and up to 1
};
// "3=0.5" is rank 3 at half the speed. Nothing if the text is of another form.
std::optional<SlowRank> parse_slow_rank(const std::string& text);

// Stands between a CPU's net and the strategy's hooks, and sleeps so that forward and backward
// reach each parameter as late as on a slow worker. The compute thread makes all calls.
class SlowWorker : public Hooks {
 public:
  SlowWorker(Hooks& hooks, double speed) : hooks_(hooks), more_(1 / speed - 1) {}

  void begin_step();
  void end_step();

  void before_use(Parameter& parameter) override;
  bool needs_before_use() const override { return hooks_.needs_before_use(); }
  void on_grad_ready(Parameter& parameter) override;
  bool wants_ready_events() const override { return hooks_.wants_ready_events(); }

 private:
  void catch_up(Clock::duration least);

  Hooks& hooks_;
  double more_;           // sleep per computation
  bool in_step_ = false;  // tests use the same net, but do not sleep
  Clock::time_point last_;
  Clock::duration owed_{};  // sleep; negative if it lasted too long
};

}  // namespace tandem

// How gradients become weight updates: one class per algorithm of the papers. The training loop
// (train/trainer.cpp) is the same for all of them and calls, for t = 1 … T:
//
//   before_step(t)         wait for what step t depends on; apply the update
//   before_use(param)      forward reaches this parameter                 (from Hooks)
//   on_grad_ready(param)   backward has finished this parameter           (from Hooks)
//   after_backward(t)      hand over what is left; synchronous algorithms wait and update here
//   finish()               drain, so that all ranks end at the same iteration
//
// All calls are made by the worker's compute thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "autograd/hooks.h"
#include "autograd/sgd.h"
#include "dist/timing/spans.h"

namespace tandem {

class Strategy : public Hooks {
 public:
  virtual void before_step(std::int64_t t) { (void)t; }
  virtual void after_backward(std::int64_t t) = 0;
  virtual void finish() {}
};

// What `--algo` offers.
const std::vector<std::string>& strategy_names();

// The arguments must outlive the strategy.
std::unique_ptr<Strategy> make_strategy(const std::string& name, Sgd& optimizer, Spans& spans);

}  // namespace tandem

// How gradients become weight updates: one class per algorithm of the papers, all of them listed in
// strategies.h. The training loop
// (train/trainer.cpp) is the same for all of them and calls, for t = 1 … T:
//
//   before_step(t)         wait for what step t depends on; apply the update
//   before_use(param)      forward reaches this parameter                 (from Hooks)
//   on_grad_ready(param)   backward has finished this parameter           (from Hooks)
//   after_backward(t)      hand over what is left; synchronous algorithms wait and update here
//   settle()               before a pause: wait for communication under way
//   before_test()          bring the weights that are to be tested, the same on all workers
//   after_test()           go on from where training was
//   finish()               drain, so that all ranks end at the same iteration
//
// All calls are made by the worker's compute thread. All workers make the same calls in the same
// order, except settle(), which a rank may also call by itself when it fails.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "autograd/hooks.h"
#include "autograd/sgd.h"
#include "dist/communication.h"
#include "dist/compress/compressor.h"
#include "dist/strategy_options.h"
#include "dist/timing/spans.h"
#include "tensor/event.h"
#include "tensor/state.h"

namespace tandem {

// A gradient, or a sum of gradients, of one iteration; laid out like the flat gradient.
struct Gradient {
  std::int64_t iteration = 0;
  Tensor values;
  EventPtr ready;  // from here on the values may be read and written
};

// What the sum of a worker's gradients over its samples is divided by.
enum class GradientScale {
  global_batch,  // the sum over the workers is the gradient of the mean loss of the batch
  local_batch,   // each worker has the gradient of the mean loss of its own samples
};

class Strategy : public Hooks {
 public:
  virtual GradientScale gradient_scale() const { return GradientScale::global_batch; }

  virtual void before_step(std::int64_t t) { (void)t; }
  virtual void after_backward(std::int64_t t) = 0;
  // Else a pipeline would go on while the workers test, and its next iterations would seem shorter
  // than they are. Throws what the communication thread has found.
  virtual void settle() {}
  // For algorithms whose workers differ between iterations. Tests change nothing: after_test()
  // restores what before_test() replaced. Weights are compared between ranks (--verify-every) in
  // between, too.
  virtual void before_test() {}
  virtual void after_test() {}
  virtual void finish() {}

  // What the strategy holds between two iterations, such as sums that are not applied yet, to be
  // saved with weights and momenta, or loaded before a run goes on from there (tensor/state.h).
  // Waits for communication under way.
  virtual void visit(State& state) { (void)state; }
};

// What a strategy works with. All of it must outlive the strategy.
struct StrategyContext {
  ParameterSet& parameters;
  Sgd& optimizer;
  Spans& spans;  // of the compute thread
  Communication& communication;
  const Compressor& compressor;
  int workers = 1;
  StrategyOptions options = {};
  std::int64_t warmup_iterations = 0;  // of d-sync, with which the run begins

  std::int64_t option(const std::string& name) const { return option_value(options, name); }
};

// What the ranks behind the workers do, for algorithms that have servers. It is called by the
// communication thread.
class Server {
 public:
  virtual ~Server() = default;
  // Answers the workers' iterations first … last.
  virtual void serve(std::int64_t first, std::int64_t last) = 0;
  // What the server holds between two iterations; see Strategy::visit().
  virtual void visit(State& state) = 0;
};

}  // namespace tandem

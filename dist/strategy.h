// How gradients become weight updates: one class per algorithm, all listed in strategies.h. All
// share one training loop (train/trainer.cpp), which makes these calls for t = 1 … T:
//
//   before_step(t)         wait for what step t depends on; apply the update
//   before_use(param)      forward reaches this parameter                 (from Hooks)
//   on_grad_ready(param)   backward has finished this parameter           (from Hooks)
//   after_backward(t)      hand over the gradient; synchronous algorithms wait and update here
//   settle()               before a pause: wait for communication in flight
//   before_test()          set the weights to test, the same on all workers
//   after_test()           restore the weights of training
//   keep_weights(t)        asynchronous algorithms: keep the weights of now, to test them later
//   finish()               apply what is in flight, so that all workers end with the same weights
//
// The worker's compute thread makes all calls. All workers make the same calls in the same order,
// except settle(): a failing rank may call it alone. With asynchronous algorithms they do not make
// them at the same time: one worker may be many iterations ahead of another.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "autograd/hooks.h"
#include "autograd/sgd.h"
#include "dist/communication.h"
#include "dist/compress/compressor.h"
#include "dist/schedule/merge.h"
#include "dist/strategy_options.h"
#include "dist/timing/spans.h"
#include "tensor/event.h"
#include "tensor/state.h"

namespace tandem {

class Codec;

// A gradient, or a sum of gradients, of one iteration; laid out like the flat gradient.
struct Gradient {
  std::int64_t iteration = 0;
  Tensor values;
  EventPtr ready;  // after it, the values may be read and written
};

// What a worker divides the sum of its samples' gradients by.
enum class GradientScale {
  global_batch,  // the sum over the workers is the gradient of the mean loss of the batch
  local_batch,   // each worker has the gradient of the mean loss of its own samples
};

// How a worker communicates, if that is decided while it runs.
struct CommunicationPlan {
  std::string text;                    // in a few words for the user; empty: none, or not yet
  std::vector<std::int64_t> elements;  // of each message, in the order of sending
  std::optional<double> predicted_s;   // of an iteration
  std::int64_t first_iteration = 0;    // that communicates so
  std::optional<MergePlan> merge;      // with what it was made from, if it merges by measurement
};

class Strategy : public Hooks {
 public:
  virtual GradientScale gradient_scale() const { return GradientScale::global_batch; }

  virtual void before_step(std::int64_t t) { (void)t; }
  virtual void after_backward(std::int64_t t) = 0;
  // Without this call, a pipeline would continue to communicate during tests, and the next
  // iterations would seem too short. Rethrows a failure of the communication thread.
  virtual void settle() {}
  // For algorithms whose workers have different weights between iterations. A test must not change
  // the run: after_test() restores what before_test() replaced. --verify-every also compares the
  // ranks' weights between these two calls.
  virtual void before_test() {}
  virtual void after_test() {}
  virtual void finish() {}

  // To test a run, asynchronous algorithms do not stop it: a fast worker would wait for slow ones,
  // which changes the run. All workers call keep_weights() after the same iterations. After
  // finish(), the first worker takes the weights that were kept, laid out like the flat values, in
  // host memory; the other workers get none.
  virtual void keep_weights(std::int64_t t) { (void)t; }
  virtual std::vector<Tensor> take_kept_weights() { return {}; }

  virtual CommunicationPlan plan() const { return {}; }

  // Saves or loads the strategy's state between two iterations, such as sums that are not applied
  // yet (tensor/state.h). The weights and momenta are saved elsewhere. Waits for communication in
  // flight.
  virtual void visit(State& state) { (void)state; }
};

// What a strategy works with. It must outlive the strategy.
struct StrategyContext {
  ParameterSet& parameters;
  Sgd& optimizer;
  Spans& spans;  // of the compute thread
  Communication& communication;
  const Compressor& compressor;  // `none` if there is a codec
  Codec* codec = nullptr;        // encodes gradients once per worker (codecs/codec.h); may be null
  int workers = 1;
  StrategyOptions options = {};
  std::uint64_t seed = 1;              // of random choices; all ranks have the same
  std::int64_t warmup_iterations = 0;  // of d-sync, at the beginning of the run
  // For algorithms that plan by measurement (StrategyInfo::keeps_plan): a plan to use instead. Only
  // the first worker's counts.
  const MergePlan* plan = nullptr;

  std::int64_t option(const std::string& name) const { return option_value(options, name); }
  double number(const std::string& option) const { return option_number(options, option); }
};

// A server. Servers are the ranks that follow the workers. The communication thread makes the
// calls.
class Server {
 public:
  virtual ~Server() = default;
  // Answers the workers' iterations first … last.
  virtual void serve(std::int64_t first, std::int64_t last) = 0;
  // The server's part in the workers' finish(), after the last iteration.
  virtual void finish() {}
  // Saves or loads the server's state between two iterations; see Strategy::visit().
  virtual void visit(State& state) = 0;
};

}  // namespace tandem

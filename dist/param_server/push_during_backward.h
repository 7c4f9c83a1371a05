// Pushes the gradient to the servers while backward still computes it: "wait-free backward" (Ko et
// al., Fig. 4). README.md has the picture.
//
// Backward finishes parameters roughly from the end of the flat gradient to its beginning, so the
// segments are pushed in that order. They form parts: the segments that one parameter completes if
// backward keeps exactly to that order. A part is pushed when backward has finished all parameters
// in it and after it, in whatever order.
//
//   flat gradient   | conv1 |b| conv2        |b| conv3                 |
//   segments        |      |      |      |      |      |      |        |
//   parts           |      3      |      2      |           1          |
//
// All pushes and answers of an iteration are one job of the communication thread. It must not end
// between two parts: over MPI, messages move only while their sender and their receiver wait.
//
// Weights arrive during backward and replace the old ones at once. That is safe. Servers answer a
// segment only when this worker has pushed it, and backward does not read a parameter again when
// its gradient is ready (autograd/hooks.h).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/queue.h"
#include "dist/param_server/shards.h"
#include "dist/strategy.h"
#include "tensor/staging.h"

namespace tandem {

// The compute thread makes all calls. A strategy declares it before its Shards.
class PushDuringBackward {
 public:
  // `answer`: the weights' way from the host, if the servers answer pushes with weights; else null.
  PushDuringBackward(const StrategyContext& context, Shards& shards, Staging* answer);

  void begin_step(std::int64_t t);
  void on_grad_ready(const Parameter& parameter);
  // Call it after backward. Waits until all segments are pushed and answered.
  void end_step();

 private:
  struct Part {
    std::size_t first_segment;  // of all
    std::int64_t first, count;  // elements
    // Counted from the beginning of the part, in the order of pushing.
    std::vector<Segment> segments;
    std::unique_ptr<Staging> staging;
    std::size_t parameters = 0;  // that end in it
    std::size_t missing = 0;     // of these, in this iteration
  };

  void add_part(std::size_t first_segment, std::size_t end_segment);
  void hand_over(const EventPtr& ready);  // the next part
  // Jobs for the communication thread.
  EventPtr run(const EventPtr& ready);
  void push(const Part& part, const EventPtr& ready);

  StrategyContext c_;
  Shards& shards_;
  Staging* answer_;
  std::vector<Part> parts_;           // in the order of pushing
  std::vector<std::size_t> ends_in_;  // by parameter: the first part that it belongs to

  // Of this iteration.
  std::int64_t t_ = 0;
  std::size_t handed_over_ = 0;    // parts
  BlockingQueue<EventPtr> ready_;  // of these parts, in their order
  BlockingQueue<EventPtr> answered_;
};

}  // namespace tandem

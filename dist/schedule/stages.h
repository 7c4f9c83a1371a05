// The flat gradient in the order in which backward finishes it.
//
// Backward finishes parameters roughly from the last to the first. Communication needs whole blocks
// (dist/block.h), and a block may hold parts of several parameters. So the flat gradient is cut,
// from its end to its beginning, into stages: a stage is a range of blocks that become ready at the
// same time, when all parameters in them and after them are finished.
//
//   flat gradient   | conv1 |b| conv2        |b| conv3                 |
//   blocks          |   |   |   |   |   |   |   |   |   |   |   |   |   |
//   stages          |   3   |       2         |            1            |
//
// If a parameter is finished later than one that lies before it in the flat gradient, both are in
// the later stage. (This happens with ResNet's shortcuts, which have few parameters.)
#pragma once

#include <optional>
#include <vector>

#include "autograd/parameter.h"
#include "dist/block.h"

namespace tandem {

struct Stage {
  BlockRange range;
  const Parameter* last = nullptr;  // the parameter that completes it
};

// Whether a parameter has elements in this range of the flat gradient.
inline bool overlap(const BlockRange& range, const Parameter& parameter) {
  return parameter.offset < range.first() + range.count &&
         range.first() < parameter.offset + parameter.shape.count();
}

// `ready` lists all trained parameters of the set in the order in which they become ready. The
// stages are in that order, too.
std::vector<Stage> stages_of(const ParameterSet& parameters,
                             const std::vector<const Parameter*>& ready);

// Learns the stages from the first backward pass. In later passes, says when each stage is ready.
class StagesInOrder {
 public:
  void begin_step() { parameters_ready_ = stages_ready_ = 0; }
  // Call it when backward has finished this parameter, in the same order as in the first pass.
  // Returns the number of the stage that this completes, if there is one.
  std::optional<std::size_t> ready(const Parameter& parameter);
  // Call it at the end of the first backward pass.
  void learn(const ParameterSet& parameters) { stages_ = stages_of(parameters, order_); }

  const std::vector<Stage>& all() const { return stages_; }  // empty before learn()
  bool all_ready() const { return stages_ready_ == stages_.size(); }

 private:
  std::vector<const Parameter*> order_;
  std::vector<Stage> stages_;
  std::size_t parameters_ready_ = 0, stages_ready_ = 0;  // in this step
};

}  // namespace tandem

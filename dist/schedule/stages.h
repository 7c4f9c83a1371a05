// The flat gradient in the order in which backward finishes it.
//
// Backward finishes parameters roughly from the last to the first. Communication needs whole blocks
// (dist/block.h), and a block may hold parts of several parameters. So the flat gradient is cut,
// from its end to its beginning, into stages: a stage is a range of blocks that become ready at the
// same time, when all parameters in them and behind them are finished.
//
//   flat gradient   | conv1 |b| conv2        |b| conv3                 |
//   blocks          |   |   |   |   |   |   |   |   |   |   |   |   |   |
//   stages          |   3   |       2         |            1            |
//
// If a parameter behind finishes later than one before it, both are in the later stage. (ResNet's
// shortcuts do so: their parameters are small.)
#pragma once

#include <vector>

#include "autograd/parameter.h"
#include "dist/block.h"

namespace tandem {

struct Stage {
  BlockRange range;
  const Parameter* last = nullptr;  // the parameter that completes it
};

// `ready` lists all trained parameters of the set in the order in which they become ready. The
// stages are in that order, too.
std::vector<Stage> stages_of(const ParameterSet& parameters,
                             const std::vector<const Parameter*>& ready);

}  // namespace tandem

// --compress auto: measures how long the sum of a gradient takes with each compression that the
// user allows, on this network and with this net, and chooses the fastest.
#pragma once

#include <string>

#include "data/dataset.h"
#include "dist/communication.h"
#include "train/options.h"
#include "train/trainer.h"

namespace tandem {

struct ChosenCompression {
  std::string compress;
  std::string text;  // what was measured, for the user; empty if nothing was
};

// All workers must make this call, and get the same answer. If --compress names no list to choose
// from, nothing is measured.
ChosenCompression choose_compression(const Task& task, const DataSplit& data,
                                     const TrainOptions& options, Communication& communication);

}  // namespace tandem

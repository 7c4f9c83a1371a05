// --algo auto and --compress auto: predicts how long an iteration takes with each algorithm and
// each compression that the user allows, on this network and with this net, and chooses the
// fastest.
//
// What predictions need is measured before training: in the first iterations of an algorithm that
// sends gradients during backward, on weights of their own, and by timing sums with each
// compression. An algorithm without a formula (StrategyInfo::forecast) has a trial of its own.
#pragma once

#include <string>
#include <vector>

#include "data/dataset.h"
#include "dist/communication.h"
#include "train/options.h"
#include "train/trainer.h"

namespace tandem {

// What there is to choose from. Without auto, one of each.
struct Choices {
  std::vector<std::string> algos, compressions;
  bool several() const { return algos.size() > 1 || compressions.size() > 1; }
};
Choices choices_of(const TrainOptions& options);

// Throws UserError if auto cannot choose from all of these with these options, which name one
// algorithm of them.
void check_choices(const TrainOptions& options, const Choices& choices);

struct Chosen {
  std::string algo, compress;
  std::string text;  // the predictions, for the user; empty if there was nothing to choose
};

// All workers must make this call, and get the same answer.
Chosen choose(const Task& task, const DataSplit& data, const TrainOptions& options,
              const Choices& choices, Communication& communication);

}  // namespace tandem

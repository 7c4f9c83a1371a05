// What the ranks of a job compare, so that all of them train the same net: the options before the
// first message, the data and the weights before the first iteration, and the weights again during
// training.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "autograd/parameter.h"
#include "data/dataset.h"
#include "dist/agreement.h"
#include "dist/communication.h"
#include "train/options.h"

namespace tandem {

// The program's name and all options that must be equal on all ranks (option_table.h), for
// run_on_ranks.
std::vector<Trait> traits_of(const std::string& app, const TrainOptions& options);

// What a run must have in common with a checkpoint to continue from it: the same, without options
// that may change, and with the data.
std::vector<Trait> traits_to_resume(const std::string& app, const TrainOptions& options,
                                    const DataSplit& data);

// Compares sizes, shapes and fingerprints of the data, but not the paths. Every rank must call it.
// Throws UserError on rank 0, which says what differs, and SaidElsewhere on the others.
void require_same_data(Communication& communication, const DataSplit& data);

// The same for the initial weights.
void require_same_start(Communication& communication, const ParameterSet& parameters);

// Every worker calls it after this iteration. Throws SystemError on rank 0, which names the ranks
// whose weights differ from its own and the first such parameter, and SaidElsewhere on the others.
// Statistics that forward passes measure, such as running means, are compared only
// `with_statistics`: between tests they differ from worker to worker.
void require_same_weights(Communication& communication, int workers, const ParameterSet& parameters,
                          bool with_statistics, std::int64_t iteration);

}  // namespace tandem

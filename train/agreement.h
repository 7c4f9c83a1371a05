// What the ranks of a job compare, so that none trains another net than the others: the options
// before the first message, the data and the weights before the first iteration, the weights again
// while training goes on.
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

// The program and all options that must be the same on all ranks (option_table.h), for
// run_on_ranks.
std::vector<Trait> traits_of(const std::string& app, const TrainOptions& options);

// Compares sizes, shapes and fingerprints of the data; not where they lie. All ranks call together.
// Throws UserError on rank 0, which says what differs, and SaidElsewhere on the others.
void require_same_data(Communication& communication, const DataSplit& data);

// The same for the weights to begin with.
void require_same_start(Communication& communication, const ParameterSet& parameters);

// The workers call together, after this iteration. Throws SystemError on rank 0, naming the ranks
// whose weights differ from its own and the first parameter that does, and SaidElsewhere on the
// others. What forward has measured is compared only `with_statistics`: between tests every worker
// has its own.
void require_same_weights(Communication& communication, int workers, const ParameterSet& parameters,
                          bool with_statistics, std::int64_t iteration);

}  // namespace tandem

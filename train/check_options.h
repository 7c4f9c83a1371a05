#pragma once

#include "train/options.h"

namespace tandem {

// Checks every option's value and that the options fit together. Fills in what was left open: the
// number of workers (under mpiexec, its processes), the algorithm and the threads. Throws
// UserError, which names the option. Checking the result again changes nothing.
TrainOptions check_options(TrainOptions options);

}  // namespace tandem

#pragma once

#include "train/options.h"

namespace tandem {

// Checks that every option has a value that makes sense and that they go together, and settles what
// was left open: who the workers are (under mpiexec, the processes that it has started), the
// algorithm, and the threads. Throws UserError, naming the option. What it returns passes again
// unchanged.
TrainOptions check_options(TrainOptions options);

}  // namespace tandem

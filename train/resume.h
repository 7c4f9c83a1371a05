// Finds the checkpoint that a run continues from, and reads this rank's part of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dist/agreement.h"
#include "dist/communication.h"
#include "tensor/state.h"
#include "train/options.h"

namespace tandem {

struct Resumed {
  std::int64_t iteration = 0;  // the last one of the checkpoint; 0: the run begins
  std::optional<Snapshot> state;
};

// Every rank calls it. Rank 0 chooses the checkpoint, newest first. If a rank cannot read its part,
// it says why on stderr, and the ranks try an older one. Throws UserError if there is none, or if
// the checkpoint is of another run than `made_for` says.
Resumed resume(const std::string& app, const TrainOptions& options,
               const std::vector<Trait>& made_for, Communication& communication);

}  // namespace tandem

// --plan FILE keeps a merge plan (dist/schedule/merge.h) for later runs. The file is JSON: what the
// plan was made for, what it predicts, what was measured, and the messages in the order of sending,
// each with its layers. dist/schedule/README.md shows one.
#pragma once

#include <string>

#include "dist/schedule/merge.h"
#include "train/options.h"

namespace tandem {

// Whether --plan names a file that exists, whose plan is used. If not, a plan is written there.
// Pipes, devices and standard output are written.
bool reads_plan(const TrainOptions& options);

// Throws UserError, which names the file, if it does not hold a plan or one for other options. The
// strategy checks that the plan is of its net.
MergePlan read_plan(const TrainOptions& options);

std::string to_json(const MergePlan& plan, const TrainOptions& options);

}  // namespace tandem

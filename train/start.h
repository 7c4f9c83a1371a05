// What every rank does before its first iteration, workers and servers alike.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dist/agreement.h"
#include "dist/codecs/codec.h"
#include "dist/communication.h"
#include "dist/compress/compressor.h"
#include "dist/launch.h"
#include "dist/schedule/merge.h"
#include "dist/timing/model.h"
#include "train/coordination.h"
#include "train/length.h"
#include "train/options.h"
#include "train/outputs.h"
#include "train/resume.h"
#include "train/trainer.h"

namespace tandem {

// Opens the data, and checks what can fail before the first iteration. Only the first rank has
// outputs and a plan.
DataSplit open_data(const Task& task, const TrainOptions& options, std::optional<Outputs>& outputs,
                    std::optional<MergePlan>& plan);

// Measures the network. From here on, the communication thread records its spans.
NetworkCost calibrate_all(Communication& communication, const TrainOptions& options,
                          const Length& length, const Compressor& compressor);

// The codec that --compress names, for this rank; null if it names a compressor of the ring.
std::unique_ptr<Codec> make_codec(const TrainOptions& options, const Length& length,
                                  const ParameterSet& parameters, int rank);

Coordination::Run coordinated_run(const std::string& app, const std::vector<Trait>& made_for,
                                  const TrainOptions& options, const Length& length);

// Loads a part's state, if the run resumes. The part's visit() names it.
template <class Part>
void load(Communication& communication, Resumed& resumed, Part& part) {
  if (!resumed.state) return;
  together(communication, [&] {
    resumed.state->load(part);
    resumed.state->require_all_loaded();
    if constexpr (requires { part.check_loaded(); }) part.check_loaded();
  });
  resumed.state.reset();
}

}  // namespace tandem

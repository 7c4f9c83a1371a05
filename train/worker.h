// The parts of a worker: its replica, its share of the data, its strategy, and the runner of its
// steps. The loop that uses them is in trainer.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "autograd/tape.h"
#include "data/loader.h"
#include "dist/codecs/codec.h"
#include "dist/communication.h"
#include "dist/compress/compressor.h"
#include "dist/compress/measured.h"
#include "dist/strategy.h"
#include "train/input.h"
#include "train/length.h"
#include "train/profiler.h"
#include "train/replica.h"
#include "train/slow_worker.h"
#include "train/step_runner.h"

namespace tandem {

class Worker {
 public:
  // `options` come from check_options(). `plan` is the one to use, or null. All arguments must
  // outlive the worker.
  Worker(const Task& task, const DataSplit& data, const TrainOptions& options, const Length& length,
         const Compressor& compressor, Communication& communication,
         const MergePlan* plan = nullptr);

  Replica& replica() { return replica_; }
  ParameterSet& parameters() { return replica_.parameters(); }
  Strategy& strategy() { return *strategy_; }
  const Codec* codec() const { return codec_.get(); }  // may be null
  Spans& spans() { return spans_; }                    // of the compute thread
  Input& input() { return input_; }
  Tape& tape() { return tape_; }

  // Begins iteration t, counted from 1 as in the papers. `resumes`: something other than iterations
  // has run since the last one.
  void begin(std::int64_t t, bool resumes);
  // This worker's part of the next batch, on its device. Valid until the next call.
  Batch next_batch();
  // Queues forward and backward, and returns the loss. Calls the strategy's hooks on the way.
  Tensor forward_and_backward(const Batch& batch);
  // The weight of this worker's loss: its share of the batch if the loss is the mean over its own
  // samples, 1 if it is divided by the global batch (Strategy::gradient_scale()).
  double loss_share() const { return loss_share_; }

  // What the worker must remember between two iterations (tensor/state.h).
  void visit(State& state);

  // What --profile has measured.
  void report(RankReport& report) const;

  // Throws Diverged because the loss of this iteration is not finite. Names a parameter whose
  // gradient is not finite, if there is one.
  [[noreturn]] void report_divergence(std::int64_t iteration, double loss);
  // Throws SystemError, which says what did not fit into memory.
  [[noreturn]] void explain(const OutOfMemory& e) const;

 private:
  Var forward(const Batch& batch);
  Hooks& hooks();

  const TrainOptions& options_;
  std::int64_t first_timed_;  // iteration
  int rank_;
  Replica replica_;
  Input input_;
  std::optional<Loader> data_;  // none if nothing is trained
  Spans spans_;
  std::unique_ptr<MeasuredCompressor> measured_;  // null without --profile
  std::unique_ptr<Codec> codec_;                  // null if --compress names none
  std::unique_ptr<Strategy> strategy_;
  std::unique_ptr<Profiler> profiler_;  // of the strategy; null without --profile
  std::unique_ptr<SlowWorker> slow_;    // of these; null unless this is --slow-rank
  Tape tape_;
  Random random_;  // reseeded every iteration
  double loss_share_ = 1;
  StepRunner steps_;
};

}  // namespace tandem

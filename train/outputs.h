// All that a run writes, on its first rank: text for a person, --metrics, --csv and --plan during
// training, and --save, --summary, --trace and --profile at the end. If one output fails, training
// and the other outputs go on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "autograd/parameter.h"
#include "train/console.h"
#include "train/file_lock.h"
#include "train/metrics.h"
#include "train/options.h"
#include "train/summary.h"

namespace tandem {

class Outputs {
 public:
  // Throws UserError, before any work is done, if a file cannot be written, if two outputs are the
  // same file, if an output would overwrite an input (--plan, --load, or `features`; only --save
  // may replace the last two), or if --checkpoint has checkpoints of a
  // run that is not resumed.
  Outputs(const std::string& app, const TrainOptions& options, const std::string& features);

  // Call when training begins, after this many iterations before a checkpoint. Clears earlier
  // metrics, except those of these iterations.
  void begin(std::int64_t done);
  // Saves or loads how far the metrics were written.
  void visit(State& state);
  // As in Metrics.
  void require_continuation();
  void sync_metrics();
  // Prints for a person, unless --quiet. Goes to stderr if an output file is standard output.
  void say(const std::string& text);

  // As in Metrics.
  void iteration(std::int64_t iteration, std::int64_t epoch, double loss, double lr, double ms);
  void test(std::int64_t epoch, std::int64_t iteration, double train_loss, double test_accuracy,
            std::optional<double> objective, double wall_s);

  // Writes a plan that was measured, not one that was read.
  void plan(const MergePlan& plan);

  // Writes the outputs of the end of a run, weights first.
  void finish(const Summary& summary, const ParameterSet& weights);
  // Throws SystemError, which lists all outputs that could not be written.
  void throw_if_any_failed() const { failures_.throw_if_any(); }

 private:
  TrainOptions o_;
  std::optional<LockFile> checkpoint_lock_;
  WriteFailures failures_;
  Console console_;
  struct Course {
    Metrics metrics;
    bool works = true;  // until it cannot be written
  };
  Course courses_[2];
};

}  // namespace tandem

// All that a run writes, by its first rank: text for a person, --metrics while it trains, and at
// the end --save, --summary and --trace. None of them, when it fails, takes the training or another
// one with it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "autograd/parameter.h"
#include "train/console.h"
#include "train/metrics.h"
#include "train/options.h"
#include "train/summary.h"
#include "train/write_failures.h"

namespace tandem {

class Outputs {
 public:
  // Throws UserError, before there is anything to lose, if a file cannot be written, if two outputs
  // are one file, or if one would overwrite what is read (--load, or `features`, which only the
  // weights may replace).
  Outputs(const std::string& app, const TrainOptions& options, const std::string& features);

  // Training begins: from here on, earlier metrics are gone.
  void begin();
  // For a person, unless --quiet; on stderr if standard output is for one of the files.
  void say(const std::string& text);

  // As Metrics has them.
  void iteration(std::int64_t iteration, std::int64_t epoch, double loss, double lr, double ms);
  void test(std::int64_t epoch, std::int64_t iteration, double train_loss, double test_accuracy,
            std::optional<double> objective, double wall_s);

  // Writes what comes at the end, the weights first.
  void finish(const Summary& summary, const ParameterSet& weights);
  // Throws SystemError with all that could not be written.
  void throw_if_any_failed() const { failures_.throw_if_any(); }

 private:
  TrainOptions o_;
  WriteFailures failures_;
  Console console_;
  Metrics metrics_;
  bool metrics_work_ = true;
};

}  // namespace tandem

// The results of a run: shown at the end, and written by --summary.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "dist/strategy.h"
#include "dist/timing/model.h"
#include "dist/timing/profile.h"
#include "dist/timing/rank_report.h"
#include "train/coordination.h"
#include "train/options.h"

namespace tandem {

struct Summary {
  std::string app;
  std::string net;  // the model's name for a person
  TrainOptions options;
  std::string data;
  std::int64_t parameters = 0;
  std::int64_t iterations = 0;
  std::int64_t warmup = 0;  // iterations of d-sync before the pipeline opens
  std::int64_t cold = 0;    // first iterations, whose times are not counted
  // How many iterations were done when the run was started: 0, then those of each checkpoint that
  // it continued from. The times of the `cold` iterations after each start are not counted.
  std::vector<std::int64_t> starts;
  double startup_s = 0;              // from the program's start to the end of its first iteration
  int stopped_by = 0;                // the number of the signal; 0: the run is complete
  double wall_s = 0;                 // training alone, without tests and checkpoints
  std::vector<double> iteration_ms;  // one per iteration
  std::vector<RankReport> ranks;     // workers, then servers; times without cold iterations
  NetworkCost network;               // measured before training; zero for a single worker
  std::int64_t gradient_count = 0;   // elements of the flat gradient
  std::int64_t plain_elements = 0;   // that a codec sends plain
  bool encodes_on_device = false;    // a codec, with a gradient on a GPU
  CommunicationPlan plan;            // of worker 0
  bool tested = false;               // else these three are not known
  double train_loss = 0;             // mean over the iterations between the last two tests
  double test_accuracy = 0;
  std::optional<double> objective;  // the loss over the whole training set, with --objective
  std::string weights_hash;
  Coordination::Account checkpoints;
  double checkpoint_pause_s = 0;  // how long training waited for all checkpoints
  Profile profile;                // with --profile; no tensors if no iteration was timed
  std::set<std::string> skipped;  // broken images that any worker has left out

  // What a run that continues from a checkpoint must know of its iterations before.
  void visit(State& state);

  // Iterations that are not cold, the time of each, and averages.
  bool is_timed(std::int64_t iteration) const;
  std::int64_t timed() const;
  std::vector<double> timed_ms() const;
  double mean_ms() const;
  double samples_per_s() const;
  // The best seconds between two checkpoints, by Daly's formula, if failures come so often.
  std::optional<double> best_checkpoint_s() const;
  // The prediction for an iteration, by the algorithm's timing model or else by its plan, and the
  // model's input.
  std::optional<double> predicted_s() const;
  ModelInput model() const;
};

// Since the program was started.
double seconds_since_start(Clock::time_point now);

std::string to_json(const Summary& summary);  // one object
std::string to_text(const Summary& summary);  // for a person
// The summary's "plan", on one line.
std::string plan_to_json(const Summary& summary);

}  // namespace tandem

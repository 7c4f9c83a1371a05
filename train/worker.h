// One model replica with all that it needs to train: a rank of the job.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "autograd/sgd.h"
#include "autograd/tape.h"
#include "data/loader.h"
#include "dist/communication.h"
#include "dist/compress/compressor.h"
#include "dist/strategy.h"
#include "train/input.h"
#include "train/options.h"
#include "train/step_runner.h"
#include "train/task.h"

namespace tandem {

// How long a run is.
struct Length {
  Length(const DataSplit& data, const TrainOptions& options);
  std::int64_t iterations, iterations_per_epoch;
  std::int64_t iterations_per_test;
  std::int64_t warmup;  // iterations of d-sync before the pipeline opens
  std::int64_t cold;    // first iterations, in which memory is taken and libraries choose
                        // algorithms: their times do not count

  // Whether every test is at the end of an epoch.
  bool tests_by_epochs() const {
    return iterations_per_test == iterations_per_epoch && iterations % iterations_per_epoch == 0;
  }
};

// A model's weights and what updates them: all that a parameter server needs of a worker.
class Replica {
 public:
  Replica(const Task& task, const DataSplit& data, const TrainOptions& options,
          const Device& device);

  Layer& model() { return *model_; }
  ParameterSet& parameters() { return parameters_; }
  const ParameterSet& parameters() const { return parameters_; }
  Sgd& optimizer() { return optimizer_; }
  const Device& device() const { return device_; }

 private:
  Device device_;
  std::unique_ptr<Layer> model_;
  ParameterSet parameters_;
  Sgd optimizer_;
};

class Worker {
 public:
  // `options` are what check_options() returns. `communication` is null for one worker alone.
  Worker(const Task& task, const DataSplit& data, const TrainOptions& options,
         const Compressor& compressor, Communication* communication);

  int rank() const { return rank_; }
  double rate(std::int64_t t) { return replica_.optimizer().rate(t); }
  Spans& spans() { return spans_; }
  ParameterSet& parameters() { return replica_.parameters(); }

  // Iteration t, counted from 1 as in the papers.
  void step(std::int64_t t);
  // The iterations that are known to be done by now, oldest first, each once. A GPU is given the
  // next ones before it has done these; with `all`, waits until it has.
  struct Done {
    double loss;  // this worker's part: the sum over the workers is the mean over the batch
    Clock::time_point at;
  };
  std::vector<Done> take_done(bool all);
  // The loss of this iteration is not a number. Throws Diverged, which names a parameter whose
  // gradient is not finite either, if there is one.
  [[noreturn]] void report_divergence(std::int64_t iteration, double loss);
  // After the last iteration: makes the updates that are still missing, and waits for them. The
  // time that it takes belongs to no iteration.
  void finish();

  // What forward measured, such as the running means of batch norms; each worker's own.
  std::vector<double> statistics() const;
  void set_statistics(std::span<const double> values);

  // Of this worker's part of the test set; without what cannot be read and is left out.
  struct Tested {
    std::int64_t samples = 0, correct = 0;
  };
  Tested test();

  // With --objective: this worker's part of the loss over the whole training set, with the weights
  // as they are. The sum over the workers is the mean over the samples.
  double objective();

 private:
  // An iteration that has been queued.
  struct Queued {
    std::int64_t iteration;
    Tensor loss;    // on the host
    EventPtr done;  // null where that is so already
  };

  Batch next_batch();
  Var forward(const Batch& batch);
  [[noreturn]] void explain(const OutOfMemory& e) const;

  TrainOptions options_;
  int rank_;
  Replica replica_;
  Device host_;
  Input input_;
  std::optional<Loader> train_data_;  // none where nothing is trained
  std::optional<Loader> whole_data_;  // for objective()
  Loader test_data_;
  Spans spans_;
  std::unique_ptr<Strategy> strategy_;
  Tape tape_;
  Random random_;  // of the iteration
  StepRunner steps_;
  std::deque<Queued> queued_;
  bool resumes_ = true;  // something else than steps has been done since the last one
};

}  // namespace tandem

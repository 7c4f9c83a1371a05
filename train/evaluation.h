// Tests the current weights. Each worker tests its part of the test set, and all get the sums.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "data/loader.h"
#include "train/worker.h"

namespace tandem {

class Evaluation {
 public:
  // The arguments must outlive it.
  Evaluation(Worker& worker, const DataSplit& data, const TrainOptions& options,
             Communication& communication);

  // Averages over the workers what their forward passes have measured, such as the running means of
  // batch norms. Each worker has seen different samples, but what is tested and saved must not
  // depend on the rank. If workers do not compute with the weights that are tested, and `again` is
  // set, this first measures with these weights, on some batches of training samples.
  void average_statistics(bool again);

  // Sets the weights of all workers to these of the first one, laid out like the flat values, in
  // host memory. The other workers' argument does not matter.
  void set_weights(const Tensor& of_first);

  struct Result {
    std::vector<double> losses;  // per iteration, the mean over the batch
    double accuracy = 0;
    std::optional<double> objective;  // with --objective: the loss over the whole training set

    double mean_loss() const;
  };
  // Every worker calls it with its parts of the losses since the last test.
  Result operator()(std::vector<double> losses);

 private:
  // This worker's part of the test set, without images that cannot be decoded.
  struct Tested {
    std::int64_t samples = 0, correct = 0;
  };
  Tested test();
  double objective();
  void measure_statistics();
  template <class F>
  void for_each_batch(Loader& loader, F&& f);

  Worker& worker_;
  const DataSplit& data_;
  const TrainOptions& o_;
  Communication& communication_;
  Loader test_data_;
  std::optional<Loader> whole_data_;  // for the objective
};

}  // namespace tandem

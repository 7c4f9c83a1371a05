// A model's weights and their optimizer. Every worker and every parameter server has one.
#pragma once

#include <memory>

#include "autograd/sgd.h"
#include "data/dataset.h"
#include "train/options.h"
#include "train/trainer.h"

namespace tandem {

// The device that the options name, for a worker of this rank.
Device make_device(const TrainOptions& options, int rank);

class Replica {
 public:
  // Creates the model and loads the weights that the task and the options name.
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

}  // namespace tandem

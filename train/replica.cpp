#include "train/replica.h"

#include <algorithm>

#include "dist/codecs/codec_table.h"
#include "dist/transport/mpi_launch.h"
#include "tensor/cuda/cuda_backend.h"
#include "train/checkpoint.h"
#include "train/length.h"
#include "train/weights.h"

namespace tandem {
namespace {

Schedule make_schedule(const TrainOptions& o, const Length& length) {
  Schedule s;
  s.kind = o.lr_schedule;
  s.base = o.lr;
  s.iterations = std::max<std::int64_t>(1, length.iterations);
  s.step_every = o.lr_step_epochs * length.iterations_per_epoch;
  s.step_factor = o.lr_step_factor;
  s.warmup = o.lr_warmup_iterations;
  return s;
}

SgdOptions sgd_options(const TrainOptions& o, const Length& length) {
  return {.schedule = make_schedule(o, length),
          .momentum = o.momentum,
          .weight_decay = o.weight_decay,
          .nesterov = o.nesterov,
          .gradient_has_momentum = owns_momentum(o.compress)};
}

}  // namespace

Device make_device(const TrainOptions& o, int rank) {
  if (o.device == DeviceKind::cpu) return cpu_device(o.threads);
  const auto launch = mpi_launch();
  return cuda_device({.index = (launch ? launch->local_rank : rank) % cuda_device_count(),
                      .precision = o.precision,
                      .deterministic = o.deterministic});
}

Replica::Replica(const Task& task, const DataSplit& data, const TrainOptions& o,
                 const Device& device)
    : device_(device),
      model_(task.model(data.train->image_shape(), data.train->classes(), o.seed)),
      parameters_(model_->parameters(), device_, activation_dtype(o.precision)),
      optimizer_(parameters_, sgd_options(o, Length(data, o))) {
  if (!task.features.empty()) load_fixed_weights(task.features, parameters_);
  if (!o.load.empty()) load_weights(o.load, parameters_);
  if (!o.resume_weights.empty()) read_checkpoint_weights(o.resume_weights).load(parameters_);
}

}  // namespace tandem

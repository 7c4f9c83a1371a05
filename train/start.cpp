#include "train/start.h"

#include "dist/codecs/codec_table.h"
#include "dist/strategies.h"
#include "dist/timing/calibration.h"
#include "dist/transport/mpi_launch.h"
#include "tensor/backend.h"
#include "train/plan_file.h"

namespace tandem {

DataSplit open_data(const Task& task, const TrainOptions& o, std::optional<Outputs>& outputs,
                    std::optional<MergePlan>& plan) {
  if (is_first_rank()) {
    outputs.emplace(task.app, o, task.features);
    if (reads_plan(o)) plan = read_plan(o);
  }
  DataSplit data = task.data();
  const bool trains = o.epochs > 0 || o.iterations > 0;
  if (trains && o.batch > data.train->size())
    throw UserError("--batch {} is larger than the training set of {} samples", o.batch,
                    data.train->size());
  const std::int64_t iterations = Length(data, o).iterations;
  const std::int64_t needed = strategy_named(o.algo).measures_until;
  if (is_first_rank() && !o.plan.empty() && !plan && iterations < needed)
    throw UserError("--plan: a plan is measured in the first {} iterations; this run has {}",
                    needed, iterations);
  return data;
}

NetworkCost calibrate_all(Communication& communication, const TrainOptions& o, const Length& length,
                          const Compressor& compressor) {
  return communication.call([&] {
    if (o.keeps_spans()) communication.spans().keep_all();
    communication.spans().count_from(length.cold_until() + 1);
    if (!strategy_named(o.algo).distributed()) return NetworkCost();
    Transport& transport = communication.transport();
    return calibrate(transport, transport.size(), compressor, o.device == DeviceKind::cpu);
  });
}

std::unique_ptr<Codec> make_codec(const TrainOptions& o, const Length& length,
                                  const ParameterSet& parameters, int rank) {
  const auto choice = parse_compression(o.compress);
  if (!choice) return nullptr;
  // Servers decode on the host, whose codec must know the residuals.
  const StrategyInfo& algo = strategy_named(o.algo);
  const bool on_device =
      parameters.device().backend().encodes() && algo.servers(o.algo_options) == 0;
  return choice->info->make(*choice, {.parameters = parameters,
                                      .workers = o.workers,
                                      .rank = rank,
                                      .seed = o.seed,
                                      .error_feedback = !o.no_error_feedback,
                                      .momentum = o.momentum,
                                      .nesterov = o.nesterov,
                                      .iterations_per_epoch = length.iterations_per_epoch,
                                      .device = on_device ? parameters.device() : cpu_device(1)});
}

Coordination::Run coordinated_run(const std::string& app, const std::vector<Trait>& made_for,
                                  const TrainOptions& o, const Length& length) {
  return {.app = app,
          .made_for = made_for,
          .first = length.done + 1,
          .last = length.iterations,
          // Iterations that measure for a plan are not disturbed.
          .first_meeting = length.done + strategy_named(o.algo).measures_until + 1,
          .asynchronous = strategy_named(o.algo).asynchronous()};
}

}  // namespace tandem

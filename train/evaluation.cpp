#include "train/evaluation.h"

#include <algorithm>
#include <numeric>

#include "autograd/ops.h"
#include "dist/strategies.h"
#include "dist/transport/collectives.h"
#include "tensor/backend.h"

namespace tandem {
namespace {

// Images that a worker tests at once: as many as it trains at once, so that testing needs no more
// memory than training. Small images are tested in larger batches.
std::int64_t test_batch(const DataSplit& data, const TrainOptions& o) {
  constexpr std::int64_t kElements = 400'000;
  return std::max(std::max<std::int64_t>(1, o.batch / o.workers),
                  kElements / data.test->image_shape().count());
}

LoaderOptions part_of_worker(Worker& worker, const DataSplit& data, const TrainOptions& o,
                             int rank) {
  return {.batch = test_batch(data, o) * o.workers,
          .workers = o.workers,
          .rank = rank,
          .bytes = !worker.replica().device().is_cpu(),
          .threads = std::max(1, data.loader_threads / o.workers)};
}

std::int64_t left_out_of(const Batch& batch) {
  return std::ranges::count(batch.labels.span<std::int32_t>(), std::int32_t{Dataset::kLeftOut});
}

}  // namespace

Evaluation::Evaluation(Worker& worker, const DataSplit& data, const TrainOptions& o,
                       Communication& communication)
    : worker_(worker),
      data_(data),
      o_(o),
      communication_(communication),
      test_data_(data.test, data.normalisation, host_of(worker.replica().device()),
                 part_of_worker(worker, data, o, communication.transport().rank())) {
  if (o.objective)
    whole_data_.emplace(data.train, data.normalisation, host_of(worker.replica().device()),
                        part_of_worker(worker, data, o, communication.transport().rank()));
}

void Evaluation::average_statistics(bool again) {
  std::vector<Parameter*> statistics;
  for (Parameter* p : worker_.parameters().all())
    if (p->role == Role::statistic) statistics.push_back(p);
  if (statistics.empty()) return;
  if (again && !strategy_named(o_.algo).same_weights()) measure_statistics();
  std::vector<double> values;
  for (const Parameter* p : statistics) {
    const std::vector<float> own = p->value.to_host<float>();
    values.insert(values.end(), own.begin(), own.end());
  }
  communication_.call([&] { sum_over_ranks(communication_.transport(), o_.workers, values); });
  auto next = values.begin();
  for (Parameter* p : statistics) {
    std::vector<float> mean(static_cast<std::size_t>(p->shape.count()));
    for (float& value : mean) value = static_cast<float>(*next++ / o_.workers);
    p->value.copy_from_host(std::span<const float>(mean));
  }
}

// The running statistics give a batch the weight 0.1. After 50 batches, less than 1% is left of
// what was measured before.
void Evaluation::measure_statistics() {
  constexpr std::int64_t kBatches = 50;
  const int rank = communication_.transport().rank();
  const Device& device = worker_.replica().device();
  Loader loader(data_.train, data_.normalisation, host_of(device),
                {.batch = o_.batch,
                 .training = true,
                 .seed = o_.seed + 1,
                 .workers = o_.workers,
                 .rank = rank,
                 .augment = data_.augment,
                 .bytes = !device.is_cpu(),
                 .threads = std::max(1, data_.loader_threads / o_.workers)});
  for (std::int64_t i = 0; i < kBatches; ++i) {
    const Batch batch = worker_.input().bring(loader.next());
    worker_.tape().begin(Tape::Mode::training,
                         Random(o_.seed, Purpose::dropout).split(static_cast<std::uint64_t>(i)));
    worker_.replica().model().forward(worker_.tape(), Var{batch.images});
  }
}

void Evaluation::set_weights(const Tensor& of_first) {
  Tensor values = worker_.parameters().values();
  Bytes bytes(values.bytes());
  if (communication_.transport().rank() == 0)
    std::ranges::copy_n(of_first.raw(), std::ssize(bytes), bytes.begin());
  communication_.call([&] { broadcast(communication_.transport(), o_.workers, bytes); });
  values.copy_from_host(std::span(reinterpret_cast<const float*>(bytes.data()),
                                  static_cast<std::size_t>(values.count())));
  worker_.parameters().values_changed();
}

double Evaluation::Result::mean_loss() const {
  if (losses.empty()) return 0;
  return std::accumulate(losses.begin(), losses.end(), 0.0) / static_cast<double>(losses.size());
}

Evaluation::Result Evaluation::operator()(std::vector<double> losses) {
  const Tested tested = test();
  std::vector<double> sums = std::move(losses);
  sums.insert(sums.end(), {static_cast<double>(tested.samples), static_cast<double>(tested.correct),
                           whole_data_ ? objective() : 0});
  communication_.call([&] { sum_over_ranks(communication_.transport(), o_.workers, sums); });
  const auto take = [&] {
    const double last = sums.back();
    sums.pop_back();
    return last;
  };
  const double objective = take(), correct = take(), samples = take();
  if (samples == 0)
    throw UserError("none of the test images can be decoded, so nothing can be tested");
  return {.losses = std::move(sums),
          .accuracy = correct / samples,
          .objective = whole_data_ ? std::optional(objective) : std::nullopt};
}

// Calls f(loaded, batch, logits) for each batch of this worker. `loaded` is the loader's batch,
// `batch` the same on the worker's device, `logits` the model's output.
template <class F>
void Evaluation::for_each_batch(Loader& loader, F&& f) {
  for (std::int64_t b = 0; b < loader.batches_per_epoch(); ++b) {
    const Batch loaded = loader.next();
    if (loaded.labels.count() == 0)
      continue;  // the last batch may have too few samples for all workers
    const Batch batch = worker_.input().bring(loaded);
    worker_.tape().begin(Tape::Mode::inference);
    f(loaded, batch, worker_.replica().model().forward(worker_.tape(), Var{batch.images}));
  }
}

Evaluation::Tested Evaluation::test() {
  Tested tested;
  for_each_batch(test_data_, [&](const Batch& loaded, const Batch& batch, const Var& logits) {
    tested.correct += logits.value.backend().count_correct(logits.value, batch.labels);
    tested.samples += loaded.labels.count() - left_out_of(loaded);
  });
  return tested;
}

// This worker's part of the objective: the sum over the workers is the mean over the samples.
double Evaluation::objective() {
  double loss = 0;
  for_each_batch(*whole_data_, [&](const Batch& loaded, const Batch& batch, const Var& logits) {
    if (left_out_of(loaded) > 0)
      throw UserError("--objective needs all training images, but some cannot be decoded");
    loss +=
        softmax_cross_entropy(worker_.tape(), logits, batch.labels,
                              {.smoothing = o_.label_smoothing, .batch = whole_data_->samples()})
            .value.item();
  });
  return loss;
}

}  // namespace tandem

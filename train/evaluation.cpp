#include "train/evaluation.h"

#include <algorithm>
#include <numeric>

#include "autograd/ops.h"
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
      o_(o),
      communication_(communication),
      test_data_(data.test, data.normalisation, host_of(worker.replica().device()),
                 part_of_worker(worker, data, o, communication.transport().rank())) {
  if (o.objective)
    whole_data_.emplace(data.train, data.normalisation, host_of(worker.replica().device()),
                        part_of_worker(worker, data, o, communication.transport().rank()));
}

void Evaluation::average_statistics() {
  std::vector<Parameter*> statistics;
  std::vector<double> values;
  for (Parameter* p : worker_.parameters().all())
    if (p->role == Role::statistic) {
      statistics.push_back(p);
      const std::vector<float> own = p->value.to_host<float>();
      values.insert(values.end(), own.begin(), own.end());
    }
  if (values.empty()) return;
  communication_.call([&] { sum_over_ranks(communication_.transport(), o_.workers, values); });
  auto next = values.begin();
  for (Parameter* p : statistics) {
    std::vector<float> mean(static_cast<std::size_t>(p->shape.count()));
    for (float& value : mean) value = static_cast<float>(*next++ / o_.workers);
    p->value.copy_from_host(std::span<const float>(mean));
  }
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
  communication_.call([&] {
    Transport& transport = communication_.transport();
    sum_over_ranks(transport, o_.workers, sums);
    if (transport.rank() == 0)
      for (int server = o_.workers; server < transport.size(); ++server)
        transport.send_and_wait(server, Tag::control, {});
  });
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

#include "train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "autograd/sgd.h"
#include "dist/strategy.h"
#include "tensor/backend.h"
#include "train/files.h"
#include "train/metrics.h"
#include "train/progress.h"
#include "train/weights.h"

namespace tandem {
namespace {

constexpr std::int64_t kTestBatch = 500;

Device make_device(const TrainOptions& o) {
  return o.device == "cuda" ? cuda_device() : cpu_device(o.threads);
}

Schedule make_schedule(const TrainOptions& o, std::int64_t iterations,
                       std::int64_t iterations_per_epoch) {
  Schedule s;
  if (o.lr_schedule == "step") s.kind = Schedule::Kind::step;
  if (o.lr_schedule == "cosine") s.kind = Schedule::Kind::cosine;
  s.base = o.lr;
  s.iterations = std::max<std::int64_t>(1, iterations);
  s.step_every = o.lr_step_epochs * iterations_per_epoch;
  s.step_factor = o.lr_step_factor;
  s.warmup = o.lr_warmup_iterations;
  return s;
}

// One model replica with all that it needs to train.
class Worker {
 public:
  Worker(const Task& task, const TrainOptions& o)
      : options_(o),
        device_(make_device(o)),
        model_(task.model(o.seed)),
        parameters_(model_->parameters(), device_),
        train_data_(task.data.train, task.data.normalisation, device_,
                    {.batch = o.batch, .training = true, .seed = o.seed, .augment = task.augment}),
        test_data_(task.data.test, task.data.normalisation, device_, {.batch = kTestBatch}),
        test_samples_(task.data.test->size()),
        iterations_(o.iterations > 0 ? o.iterations : o.epochs * iterations_per_epoch()),
        optimizer_(parameters_, {.schedule = make_schedule(o, iterations_, iterations_per_epoch()),
                                 .momentum = o.momentum,
                                 .weight_decay = o.weight_decay,
                                 .nesterov = o.nesterov}),
        strategy_(make_strategy(o.algo, optimizer_, spans_)) {
    if (!o.load.empty()) load_weights(o.load, parameters_);
    tape_.set_hooks(strategy_.get());
  }

  std::int64_t iterations() const { return iterations_; }
  std::int64_t iterations_per_epoch() const { return train_data_.batches_per_epoch(); }
  double rate(std::int64_t t) const { return optimizer_.rate(t); }
  const Spans& spans() const { return spans_; }
  const ParameterSet& parameters() const { return parameters_; }

  // Iteration t, counted from 1 as in the papers. Returns the loss.
  double step(std::int64_t t) {
    const Batch batch = next_batch();
    strategy_->before_step(t);
    const Var loss = forward(t, batch);
    backward(loss);
    strategy_->after_backward(t);
    return loss.value.item();
  }

  void finish() { strategy_->finish(); }

  // Share of the test set that is classified correctly.
  double test() {
    std::int64_t correct = 0;
    for (std::int64_t b = 0; b < test_data_.batches_per_epoch(); ++b) {
      const Batch batch = test_data_.next();
      tape_.begin(Tape::Mode::inference);
      const Var logits = model_->forward(tape_, Var{batch.images});
      correct += logits.value.backend().count_correct(logits.value, batch.labels);
    }
    return static_cast<double>(correct) / static_cast<double>(test_samples_);
  }

 private:
  Batch next_batch() {
    const Spans::Scope span(spans_, SpanKind::data);
    return train_data_.next();
  }

  Var forward(std::int64_t t, const Batch& batch) {
    const Spans::Scope span(spans_, SpanKind::forward);
    tape_.begin(Tape::Mode::training,
                Random(options_.seed, Purpose::dropout).split(static_cast<std::uint64_t>(t)));
    const Var logits = model_->forward(tape_, Var{batch.images});
    return softmax_cross_entropy(tape_, logits, batch.labels,
                                 {.smoothing = options_.label_smoothing, .batch = options_.batch});
  }

  void backward(const Var& loss) {
    const Spans::Scope span(spans_, SpanKind::backward);
    tape_.backward(loss, parameters_);
  }

  TrainOptions options_;
  Device device_;
  std::unique_ptr<Layer> model_;
  ParameterSet parameters_;
  Loader train_data_, test_data_;
  std::int64_t test_samples_;
  std::int64_t iterations_;
  Sgd optimizer_;
  Spans spans_;
  std::unique_ptr<Strategy> strategy_;
  Tape tape_;
};

// The mean loss of the epoch under way.
class MeanLoss {
 public:
  void add(double loss) {
    sum_ += loss;
    ++count_;
  }
  double take() {
    const double mean = count_ ? sum_ / static_cast<double>(count_) : 0;
    *this = {};
    return mean;
  }

 private:
  double sum_ = 0;
  std::int64_t count_ = 0;
};

void run(Worker& worker, const TrainOptions& o, Summary& s) {
  const std::int64_t iterations = worker.iterations();
  const std::int64_t per_epoch = worker.iterations_per_epoch();
  Metrics metrics(o.metrics);
  Progress progress(o.quiet, iterations, (iterations + per_epoch - 1) / per_epoch);
  MeanLoss mean_loss;

  for (std::int64_t t = 1; t <= iterations; ++t) {
    const auto begin = Clock::now();
    const double loss = worker.step(t);
    if (t == iterations) worker.finish();
    const double seconds = seconds_between(begin, Clock::now());

    if (!std::isfinite(loss))
      throw SystemError("training diverged: the loss of iteration {} is {}; try a lower --lr", t,
                        loss);
    s.iterations = t;
    s.wall_s += seconds;
    s.iteration_ms.push_back(1e3 * seconds);
    mean_loss.add(loss);
    const std::int64_t epoch = (t - 1) / per_epoch + 1;
    metrics.iteration(t, epoch, loss, worker.rate(t), 1e3 * seconds);
    progress.step(t, loss, s.samples_per_s());

    if (t % per_epoch == 0 || t == iterations) {
      s.train_loss = mean_loss.take();
      s.test_accuracy = worker.test();
      metrics.epoch(epoch, t, s.train_loss, s.test_accuracy, s.wall_s);
      progress.epoch(epoch, s.train_loss, s.test_accuracy, s.samples_per_s());
    }
  }
  if (iterations == 0) s.test_accuracy = worker.test();
}

}  // namespace

Summary train(const Task& task, const TrainOptions& options) {
  if (options.batch > task.data.train->size())
    throw UserError("--batch {} is larger than the training set of {} samples", options.batch,
                    task.data.train->size());
  Worker worker(task, options);
  Summary summary{.app = task.app, .options = options, .data = task.data.description};
  summary.parameters = worker.parameters().count();
  if (!options.quiet) {
    fmt::print("data: {}: {} training and {} test images\n", task.data.description,
               task.data.train->size(), task.data.test->size());
    fmt::print("model: {}, {} parameters; {}, 1 worker, {} thread{}, batch {}\n", task.app,
               summary.parameters, options.algo, options.threads, options.threads == 1 ? "" : "s",
               options.batch);
    std::fflush(stdout);
  }
  run(worker, options, summary);
  if (const std::string broken = first_not_finite(worker.parameters()); !broken.empty())
    throw SystemError("training diverged: {} is not finite any more; try a lower --lr", broken);

  summary.spans = worker.spans();
  summary.weights_hash = weights_hash(worker.parameters());
  if (!options.save.empty()) save_weights(options.save, worker.parameters());
  if (!options.summary.empty()) write_file(options.summary, to_json(summary));
  if (!options.quiet) fmt::print("{}", to_text(summary));
  return summary;
}

}  // namespace tandem

#include "train/worker.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "autograd/ops.h"
#include "dist/finite.h"
#include "dist/transport/mpi_launch.h"
#include "tensor/backend.h"
#include "tensor/cuda/cuda_backend.h"
#include "train/weights.h"

namespace tandem {
namespace {

// Images per worker that are tested together: as many as are trained together, so that testing
// takes no more memory than training, or more where they are small.
std::int64_t test_batch(const DataSplit& data, const TrainOptions& o) {
  constexpr std::int64_t kElements = 400'000;
  return std::max(std::max<std::int64_t>(1, o.batch / o.workers),
                  kElements / data.test->image_shape().count());
}

int loader_threads(const DataSplit& data, const TrainOptions& o) {
  return std::max(1, data.loader_threads / o.workers);
}

// How many iterations a GPU is given ahead, so that it never waits for the host.
constexpr std::size_t kAhead = 2;

Device make_device(const TrainOptions& o, int rank) {
  if (o.device == "cpu") return cpu_device(o.threads);
  const auto launch = mpi_launch();
  return cuda_device({.index = (launch ? launch->local_rank : rank) % cuda_device_count(),
                      .precision = precision_named(o.precision),
                      .deterministic = o.deterministic});
}

Schedule make_schedule(const TrainOptions& o, const Length& length) {
  Schedule s;
  if (o.lr_schedule == "step") s.kind = Schedule::Kind::step;
  if (o.lr_schedule == "cosine") s.kind = Schedule::Kind::cosine;
  s.base = o.lr;
  s.iterations = std::max<std::int64_t>(1, length.iterations);
  s.step_every = o.lr_step_epochs * length.iterations_per_epoch;
  s.step_factor = o.lr_step_factor;
  s.warmup = o.lr_warmup_iterations;
  return s;
}

}  // namespace

Length::Length(const DataSplit& data, const TrainOptions& o) {
  const BatchPlan plan{.samples = data.train->size(), .batch = o.batch, .drop_last = true};
  // A set smaller than a batch is only tested.
  iterations_per_epoch = std::max<std::int64_t>(1, plan.batches_per_epoch());
  iterations = o.iterations > 0 ? o.iterations : o.epochs * iterations_per_epoch;
  iterations_per_test = o.test_every > 0 ? o.test_every : iterations_per_epoch;
  warmup = o.algo == "pipe-sgd" ? o.warmup_iterations + o.warmup_epochs * iterations_per_epoch : 0;
  constexpr std::int64_t kCold = 8;
  cold = std::min(kCold, iterations / 2);
}

Replica::Replica(const Task& task, const DataSplit& data, const TrainOptions& o,
                 const Device& device)
    : device_(device),
      model_(task.model(data.train->image_shape(), data.train->classes(), o.seed)),
      parameters_(model_->parameters(), device_, activation_dtype(precision_named(o.precision))),
      optimizer_(parameters_, {.schedule = make_schedule(o, Length(data, o)),
                               .momentum = o.momentum,
                               .weight_decay = o.weight_decay,
                               .nesterov = o.nesterov}) {
  if (!task.features.empty()) load_fixed_weights(task.features, parameters_);
  if (!o.load.empty()) load_weights(o.load, parameters_);
}

Worker::Worker(const Task& task, const DataSplit& data, const TrainOptions& o,
               const Compressor& compressor, Communication* communication)
    : options_(o),
      rank_(communication ? communication->transport().rank() : 0),
      replica_(task, data, o, make_device(o, rank_)),
      host_(host_of(replica_.device())),
      input_(replica_.device(), activation_dtype(precision_named(o.precision)), data.normalisation),
      test_data_(data.test, data.normalisation, host_,
                 {.batch = test_batch(data, o) * o.workers,
                  .workers = o.workers,
                  .rank = rank_,
                  .bytes = !replica_.device().is_cpu(),
                  .threads = loader_threads(data, o)}),
      strategy_(make_strategy(o.algo, {.parameters = replica_.parameters(),
                                       .optimizer = replica_.optimizer(),
                                       .spans = spans_,
                                       .communication = communication,
                                       .compressor = &compressor,
                                       .workers = o.workers,
                                       .servers = o.servers,
                                       .pipe_k = o.pipe_k,
                                       .warmup_iterations = Length(data, o).warmup})),
      steps_(
          o.device == "cuda" && o.graphs == "on", [this](const Batch& b) { return forward(b); },
          *strategy_, replica_.parameters(), tape_, spans_) {
  if (Length(data, o).iterations > 0)
    train_data_.emplace(data.train, data.normalisation, host_,
                        LoaderOptions{.batch = o.batch,
                                      .training = true,
                                      .seed = o.seed,
                                      .workers = o.workers,
                                      .rank = rank_,
                                      .augment = data.augment,
                                      .bytes = !replica_.device().is_cpu(),
                                      .threads = loader_threads(data, o)});
  if (o.objective)
    whole_data_.emplace(data.train, data.normalisation, host_,
                        LoaderOptions{.batch = test_batch(data, o) * o.workers,
                                      .workers = o.workers,
                                      .rank = rank_,
                                      .bytes = !replica_.device().is_cpu(),
                                      .threads = loader_threads(data, o)});
  if (o.keeps_spans()) spans_.keep_events();
}

void Worker::step(std::int64_t t) {
  Backend& backend = replica_.device().backend();
  if (std::exchange(resumes_, false) && !replica_.device().is_cpu()) spans_.follow(backend);
  spans_.set_iteration(t);
  random_ = Random(options_.seed, Purpose::dropout)
                .split(static_cast<std::uint64_t>(t))
                .split(static_cast<std::uint64_t>(rank_));
  try {
    const Batch batch = input_.bring(next_batch());
    strategy_->before_step(t);
    backend.begin_step(random_);
    const Tensor loss = steps_.run(batch);
    Queued queued{t, Tensor::empty({}, loss.dtype(), host_), nullptr};
    backend.read_later(loss, queued.loss);
    strategy_->after_backward(t);
    queued.done = backend.record_event();
    queued_.push_back(std::move(queued));
  } catch (const OutOfMemory& e) {
    explain(e);
  }
}

void Worker::finish() {
  constexpr auto kNever = std::numeric_limits<std::int64_t>::max();
  spans_.count_from(kNever);
  strategy_->finish();
  if (const EventPtr done = replica_.device().backend().record_event()) done->wait();
  spans_.settle(kNever);
}

std::vector<Worker::Done> Worker::take_done(bool all) {
  const std::size_t ahead = all || replica_.device().is_cpu() ? 0 : kAhead;
  std::vector<Done> taken;
  for (; queued_.size() > ahead; queued_.pop_front()) {
    const Queued& oldest = queued_.front();
    if (oldest.done) oldest.done->wait();
    spans_.settle(oldest.iteration);
    taken.push_back({oldest.loss.item(), Clock::now()});
  }
  resumes_ = resumes_ || all;
  return taken;
}

void Worker::report_divergence(std::int64_t iteration, double loss) {
  strategy_->finish();  // throws what the communication thread has found in the gradients
  require_finite(parameters(), parameters().gradients().to_host<float>(), iteration);
  throw Diverged("training diverged: the loss of iteration {} is {}; try a lower --lr", iteration,
                 loss);
}

void Worker::explain(const OutOfMemory& e) const {
  const Parameter* layer = tape_.last_used();
  const auto gb = [](std::size_t bytes) { return static_cast<double>(bytes) / 1e9; };
  throw SystemError(
      "out of memory on {}: {:.3f} GB were wanted at {}, beside the {:.3f} GB that this worker "
      "has; "
      "lower --batch{}",
      options_.device, gb(e.bytes), layer ? layer->name : "the first layer",
      gb(replica_.device().backend().memory().held_bytes()),
      options_.device == "cuda" && options_.precision != "bf16" ? " or take --precision bf16" : "");
}

std::vector<double> Worker::statistics() const {
  std::vector<double> all;
  for (const Parameter* p : replica_.parameters().all())
    if (p->role == Role::statistic) {
      const std::vector<float> values = p->value.to_host<float>();
      all.insert(all.end(), values.begin(), values.end());
    }
  return all;
}

void Worker::set_statistics(std::span<const double> values) {
  for (Parameter* p : replica_.parameters().all())
    if (p->role == Role::statistic) {
      const auto own = values.first(static_cast<std::size_t>(p->shape.count()));
      values = values.subspan(own.size());
      p->value.copy_from_host(std::span<const float>(std::vector<float>(own.begin(), own.end())));
    }
}

Worker::Tested Worker::test() try {
  Tested tested;
  for (std::int64_t b = 0; b < test_data_.batches_per_epoch(); ++b) {
    const Batch loaded = test_data_.next();
    if (loaded.labels.count() == 0) continue;  // the last batch may be too short for all workers
    const Batch batch = input_.bring(loaded);
    tape_.begin(Tape::Mode::inference);
    const Var logits = replica_.model().forward(tape_, Var{batch.images});
    tested.correct += logits.value.backend().count_correct(logits.value, batch.labels);
    const auto labels = loaded.labels.span<std::int32_t>();
    tested.samples +=
        std::ssize(labels) - std::ranges::count(labels, std::int32_t{Dataset::kLeftOut});
  }
  return tested;
} catch (const OutOfMemory& e) {
  explain(e);
}

double Worker::objective() try {
  double loss = 0;
  for (std::int64_t b = 0; b < whole_data_->batches_per_epoch(); ++b) {
    const Batch loaded = whole_data_->next();
    if (loaded.labels.count() == 0) continue;
    if (std::ranges::count(loaded.labels.span<std::int32_t>(), std::int32_t{Dataset::kLeftOut}) > 0)
      throw UserError("--objective needs all training images, but some cannot be decoded");
    const Batch batch = input_.bring(loaded);
    tape_.begin(Tape::Mode::inference);
    const Var logits = replica_.model().forward(tape_, Var{batch.images});
    loss += softmax_cross_entropy(
                tape_, logits, batch.labels,
                {.smoothing = options_.label_smoothing, .batch = whole_data_->samples()})
                .value.item();
  }
  return loss;
} catch (const OutOfMemory& e) {
  explain(e);
}

Batch Worker::next_batch() {
  const Spans::Scope span(spans_, SpanKind::data);
  return train_data_->next();
}

Var Worker::forward(const Batch& batch) {
  tape_.begin(Tape::Mode::training, random_);
  const Var logits = replica_.model().forward(tape_, Var{batch.images});
  return softmax_cross_entropy(tape_, logits, batch.labels,
                               {.smoothing = options_.label_smoothing, .batch = options_.batch});
}

}  // namespace tandem

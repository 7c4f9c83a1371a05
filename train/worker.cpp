#include "train/worker.h"

#include <algorithm>

#include "dist/finite.h"
#include "dist/strategies.h"
#include "tensor/device_queue.h"
#include "train/start.h"

namespace tandem {
namespace {

std::unique_ptr<SlowWorker> slow_worker(const TrainOptions& o, int rank, Hooks& hooks) {
  const auto slow = parse_slow_rank(o.slow_rank);
  return slow && slow->rank == rank ? std::make_unique<SlowWorker>(hooks, slow->speed) : nullptr;
}

}  // namespace

Worker::Worker(const Task& task, const DataSplit& data, const TrainOptions& o, const Length& length,
               const Compressor& compressor, Communication& communication, const MergePlan* plan)
    : options_(o),
      first_timed_(length.cold_until() + 1),
      rank_(communication.transport().rank()),
      replica_(task, data, o, make_device(o, rank_)),
      input_(replica_.device(), activation_dtype(o.precision), data.normalisation),
      measured_(o.profile.empty() ? nullptr : std::make_unique<MeasuredCompressor>(compressor)),
      codec_(make_codec(o, length, replica_.parameters(), rank_)),
      strategy_(make_strategy(o.algo, {.parameters = replica_.parameters(),
                                       .optimizer = replica_.optimizer(),
                                       .spans = spans_,
                                       .communication = communication,
                                       .compressor = measured_ ? *measured_ : compressor,
                                       .codec = codec_.get(),
                                       .workers = o.workers,
                                       .options = o.algo_options,
                                       .seed = o.seed,
                                       .warmup_iterations = length.warmup,
                                       .plan = plan})),
      profiler_(o.profile.empty() ? nullptr : std::make_unique<Profiler>(*strategy_)),
      slow_(slow_worker(o, rank_, profiler_ ? static_cast<Hooks&>(*profiler_) : *strategy_)),
      steps_(
          o.device == DeviceKind::cuda && o.graphs == Switch::on,
          [this](const Batch& b) { return forward(b); }, hooks(), replica_.parameters(), tape_,
          spans_) {
  if (length.iterations > 0)
    data_.emplace(data.train, data.normalisation, host_of(replica_.device()),
                  LoaderOptions{.batch = o.batch,
                                .training = true,
                                .seed = o.seed,
                                .workers = o.workers,
                                .rank = rank_,
                                .augment = data.augment,
                                .bytes = !replica_.device().is_cpu(),
                                .first = length.done,
                                .threads = std::max(1, data.loader_threads / o.workers)});
  spans_.count_from(first_timed_);
  if (o.keeps_spans()) spans_.keep_all();
}

// The outermost that there is.
Hooks& Worker::hooks() {
  if (slow_) return *slow_;
  if (profiler_) return *profiler_;
  return *strategy_;
}

void Worker::begin(std::int64_t t, bool resumes) {
  if (resumes && !replica_.device().is_cpu()) spans_.follow(replica_.device().queue());
  spans_.set_iteration(t);
  if (profiler_ && t == first_timed_) {  // nothing is communicated at this time
    profiler_->restart();
    measured_->restart();
  }
  random_ = Random(options_.seed, Purpose::dropout)
                .split(static_cast<std::uint64_t>(t))
                .split(static_cast<std::uint64_t>(rank_));
}

Batch Worker::next_batch() {
  const auto load = [&] {
    const Spans::Scope span(spans_, SpanKind::data);
    return data_->next();
  };
  if (profiler_) profiler_->begin_iteration();
  const Batch batch = input_.bring(load());
  if (profiler_) profiler_->pause();
  return batch;
}

Tensor Worker::forward_and_backward(const Batch& batch) {
  if (profiler_) profiler_->resume();
  replica_.device().queue().begin_step(random_);
  if (slow_) slow_->begin_step();
  const Tensor loss = steps_.run(batch);
  if (slow_) {
    const Spans::Scope span(spans_, SpanKind::backward);
    slow_->end_step();
  }
  if (profiler_) profiler_->end_iteration();
  return loss;
}

Var Worker::forward(const Batch& batch) {
  tape_.begin(Tape::Mode::training, random_);
  const bool local = strategy_->gradient_scale() == GradientScale::local_batch;
  const std::int64_t scale = local ? batch.labels.count() : options_.batch;
  loss_share_ = static_cast<double>(scale) / static_cast<double>(options_.batch);
  const Var loss = replica_.model().loss(tape_, Var{batch.images}, batch.labels,
                                         {.smoothing = options_.label_smoothing, .batch = scale});
  if (profiler_) profiler_->end_forward();
  return loss;
}

void Worker::report(RankReport& report) const {
  if (!profiler_) return;
  report.computing_by_tensor = profiler_->measured();
  report.host = measured_->work();
}

void Worker::visit(State& state) {
  replica_.parameters().visit(state);
  replica_.optimizer().visit(state);
  strategy_->visit(state);  // waits for sums in flight, which the codec encodes
  if (codec_) codec_->visit(state);
  spans_.visit(state, "the compute thread");
}

void Worker::report_divergence(std::int64_t iteration, double loss) {
  strategy_->settle();  // throws if the communication thread found a gradient that is not finite
  require_finite(parameters(), parameters().gradients().to_host<float>(), iteration);
  throw Diverged("training diverged: the loss of iteration {} is {}; try a lower --lr", iteration,
                 loss);
}

void Worker::explain(const OutOfMemory& e) const {
  const Parameter* layer = tape_.last_used();
  const auto gb = [](std::size_t bytes) { return static_cast<double>(bytes) / 1e9; };
  throw SystemError(
      "out of memory on {}: cannot allocate {:.3f} GB at {}, in addition to the {:.3f} GB that "
      "this worker holds; lower --batch{}",
      to_string(options_.device), gb(e.bytes), layer ? layer->name : "the first layer",
      gb(replica_.device().queue().memory().held_bytes()),
      options_.device == DeviceKind::cuda && options_.precision != Precision::bf16
          ? " or use --precision bf16"
          : "");
}

}  // namespace tandem

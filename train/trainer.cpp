#include "train/trainer.h"

#include <fmt/format.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "dist/codecs/codec_table.h"
#include "dist/launch.h"
#include "dist/strategies.h"
#include "dist/transport/mpi_launch.h"
#include "tensor/backend.h"
#include "tensor/cuda/cuda_backend.h"
#include "tensor/device_queue.h"
#include "train/agreement.h"
#include "train/check_options.h"
#include "train/choice.h"
#include "train/coordination.h"
#include "train/evaluation.h"
#include "train/gathering.h"
#include "train/interruption.h"
#include "train/outputs.h"
#include "train/prediction.h"
#include "train/profiler.h"
#include "train/progress.h"
#include "train/resume.h"
#include "train/run_ahead.h"
#include "train/run_text.h"
#include "train/serving.h"
#include "train/start.h"
#include "train/weights.h"
#include "train/worker.h"

namespace tandem {
namespace {

// One worker's part of a run.
class Training {
 public:
  Training(Worker& worker, const DataSplit& data, const TrainOptions& o, const Length& length,
           Communication& communication, Coordination& coordination, std::int64_t& sent_before,
           Summary& summary, Outputs* outputs)
      : worker_(worker),
        skipped_(data.skipped.get()),
        o_(o),
        length_(length),
        communication_(communication),
        coordination_(coordination),
        sent_before_(sent_before),
        summary_(summary),
        outputs_(outputs),
        ahead_(worker.replica().device(), worker.spans()),
        evaluation_(worker, data, o, communication),
        asynchronous_(strategy_named(o.algo).asynchronous()),
        progress_(o.quiet || !first(), length.done, length.iterations,
                  length.tests_by_epochs() ? length.epoch_of(length.iterations) : 0,
                  [this](const std::string& line) { outputs_->say(line); }) {}

  // The training loop, the same for every algorithm. dist/strategy.h says what an algorithm does in
  // each of its calls.
  void run() try {
    Strategy& strategy = worker_.strategy();
    begin_timing();
    for (std::int64_t t = summary_.iterations + 1; t <= length_.iterations; ++t) {
      worker_.begin(t, std::exchange(resumes_, false));
      const Batch batch = worker_.next_batch();
      strategy.before_step(t);
      const Tensor loss = worker_.forward_and_backward(batch);
      strategy.after_backward(t);
      ahead_.add(t, loss, worker_.loss_share());

      if (asynchronous_) end_alone(t);
      const auto [saves, stop] = coordination_.after(t);
      const bool looks = asynchronous_ ? t == length_.iterations : looks_at(t);
      const bool pauses = looks || saves || stop != 0 || t == length_.cold_until();
      if (pauses) strategy.settle();
      take_done(pauses);
      if (pauses) say_plan();
      if (t == length_.iterations) finish();
      if (looks) look_at_weights(t);
      if (saves) save(t);
      if (stop != 0) return end_early(stop);
      if (pauses) begin_timing();
    }
    if (length_.iterations == 0) look_at_weights(0);
  } catch (const OutOfMemory& e) {
    worker_.explain(e);
  }

  // All that this worker must remember between two iterations. To continue from a checkpoint, load
  // this before run().
  void visit(State& state) {
    worker_.visit(state);
    visit_measurements(state, communication_, sent_before_);
    state("iterations", summary_.iterations);
    state("losses since the last test", losses_);
    state("times of kept weights", kept_at_);
    if (skipped_) skipped_->visit(state);
    if (!first()) return;
    summary_.visit(state);
    outputs_->visit(state);
  }
  void check_loaded() {
    const auto lacks = [&](std::int64_t size) { return size != length_.done; };
    if (lacks(summary_.iterations) || std::ssize(losses_) > length_.done ||
        (first() && lacks(std::ssize(summary_.iteration_ms))))
      throw UserError("the saved state is not of iteration {}", length_.done);
    if (first()) outputs_->require_continuation();
  }

 private:
  bool first() const { return communication_.transport().rank() == 0; }

  // Timing stops at a pause, once everything queued is done, and resumes here.
  void begin_timing() {
    last_ = Clock::now();
    resumes_ = true;
  }

  void take_done(bool all) {
    for (const auto& [t, loss, at] : ahead_.take_done(all)) {
      losses_.push_back(loss);
      const double seconds = seconds_between(std::exchange(last_, at), at);
      summary_.wall_s += seconds;
      summary_.iteration_ms.push_back(1e3 * seconds);
      summary_.iterations = t;
      if (t == length_.done + 1) summary_.startup_s = seconds_since_start(at);
      if (!std::isfinite(loss)) worker_.report_divergence(t, loss);
      progress_.step(t, loss * o_.workers, samples_per_s_so_far());
    }
  }

  // Once, as soon as there is one.
  void say_plan() {
    if (!summary_.plan.text.empty()) return;
    summary_.plan = worker_.strategy().plan();
    if (summary_.plan.text.empty()) return;
    progress_.note(fmt::format("plan: {}\n", summary_.plan.text));
    if (first() && summary_.plan.merge) outputs_->plan(*summary_.plan.merge);
  }

  // Makes the outstanding updates. Their time belongs to no iteration.
  void finish() {
    constexpr auto kNever = std::numeric_limits<std::int64_t>::max();
    worker_.spans().count_from(kNever);
    worker_.strategy().finish();
    if (const EventPtr done = worker_.replica().device().queue().record_event()) done->wait();
    worker_.spans().settle(kNever);
    summary_.wall_s += seconds_between(last_, Clock::now());
  }

  // All earlier iterations are done. The pause ends when the copies are queued.
  void save(std::int64_t t) {
    const auto paused = Clock::now();
    worker_.spans().set_iteration(0);  // this time belongs to no iteration
    coordination_.save(
        t, [this](Snapshot& snapshot) { snapshot.save(*this); },
        [outputs = outputs_] {
          if (outputs) outputs->sync_metrics();
        });
    summary_.checkpoint_pause_s += seconds_between(paused, Clock::now());
  }

  // A signal stops the run.
  void end_early(int signal) {
    summary_.stopped_by = signal;
    finish();
    evaluation_.average_statistics(false);  // measuring would take too long
  }

  double samples_per_s_so_far() const {
    return summary_.wall_s > 0
               ? static_cast<double>(summary_.iterations * o_.batch) / summary_.wall_s
               : 0;
  }

  // Asynchronous workers do not meet to test: they keep weights, and test them at the end. A signal
  // ends the run at once, because workers that are far apart cannot stop together. If the ranks do
  // meet after this iteration, the communication thread must be free.
  void end_alone(std::int64_t t) {
    if (const int signal = Interruptible::signal(); signal != 0)
      throw Interrupted(signal, after_interruption(o_, t));
    if (length_.tests_at(t) && t < length_.iterations) {
      take_done(true);
      worker_.strategy().keep_weights(t);
      kept_at_.push_back(summary_.wall_s);
    }
    if (coordination_.next(t - 1) != t) return;
    if (t == length_.iterations) {  // waiting for slower workers at the end belongs to no iteration
      take_done(true);
      worker_.spans().set_iteration(0);
    }
    worker_.strategy().settle();
  }

  bool looks_at(std::int64_t t) const { return length_.tests_at(t) || verifies_at(t); }

  // Tests the weights, or only compares them between the workers.
  void look_at_weights(std::int64_t t) {
    worker_.spans().set_iteration(0);  // this time belongs to no iteration
    worker_.strategy().before_test();
    if (asynchronous_ && t > 0) test_kept_weights();
    const bool tests = t == 0 || length_.tests_at(t);
    tests ? test(t, std::exchange(losses_, {}), summary_.wall_s) : verify(t, false);
    worker_.strategy().after_test();
    if (tests) resume_servers();
  }

  void test_kept_weights() {
    const std::vector<Tensor> kept = worker_.strategy().take_kept_weights();
    const Tensor last = worker_.parameters().values().clone();
    std::int64_t before = 0;
    for (std::size_t i = 0; i < kept_at_.size(); ++i) {
      const std::int64_t t = length_.next_test(before);
      evaluation_.set_weights(first() ? kept.at(i) : Tensor());
      const auto end = losses_.begin() + (t - std::exchange(before, t));
      test(t, {losses_.begin(), end}, kept_at_[i]);
      losses_.erase(losses_.begin(), end);
    }
    worker_.replica().device().backend().copy(last, worker_.parameters().values());
    worker_.parameters().values_changed();
  }

  // They wait while the workers test.
  void resume_servers() {
    if (!first()) return;
    communication_.call([&] {
      Transport& transport = communication_.transport();
      for (int server = o_.workers; server < transport.size(); ++server)
        transport.send_and_wait(server, Tag::control, {});
    });
  }

  // `losses`: this worker's parts of the losses since the last test.
  void test(std::int64_t t, std::vector<double> losses, double wall_s) {
    evaluation_.average_statistics(t > 0);
    if (verifies_at(t)) verify(t, true);
    const Evaluation::Result found = evaluation_(std::move(losses));
    if (!first()) return;
    const std::int64_t before = t - std::ssize(found.losses);
    for (std::int64_t i = before + 1; i <= t; ++i)
      outputs_->iteration(i, length_.epoch_of(i),
                          found.losses[static_cast<std::size_t>(i - before - 1)],
                          worker_.replica().optimizer().rate(i),
                          summary_.iteration_ms[static_cast<std::size_t>(i - 1)]);
    summary_.tested = true;
    summary_.train_loss = found.mean_loss();
    summary_.test_accuracy = found.accuracy;
    summary_.objective = found.objective;
    if (t == 0) return;
    const std::int64_t epoch = length_.epoch_of(t);
    outputs_->test(epoch, t, summary_.train_loss, summary_.test_accuracy, summary_.objective,
                   wall_s);
    progress_.test(t, epoch, summary_.train_loss, summary_.test_accuracy, samples_per_s_so_far());
  }

  // The strategy guarantees equal weights on all workers between before_test() and after_test().
  bool verifies_at(std::int64_t t) const {
    if (o_.workers == 1 || o_.verify_every == 0) return false;
    if (asynchronous_) return t == length_.iterations;
    if (o_.verify_every == kAtEveryTest) return t == 0 || length_.tests_at(t);
    return t % o_.verify_every == 0 || t == length_.iterations;
  }
  void verify(std::int64_t t, bool with_statistics) {
    require_same_weights(communication_, o_.workers, worker_.parameters(), with_statistics, t);
  }

  Worker& worker_;
  SkippedFiles* skipped_;  // null if no file can be skipped
  const TrainOptions& o_;
  const Length& length_;
  Communication& communication_;
  Coordination& coordination_;
  std::int64_t& sent_before_;  // bytes, in parts of the run before a checkpoint
  Summary& summary_;
  Outputs* outputs_;  // only on the first worker
  RunAhead ahead_;
  Evaluation evaluation_;
  bool asynchronous_;
  Progress progress_;
  std::vector<double> losses_;   // this worker's parts, since the last test
  std::vector<double> kept_at_;  // the training time of weights that are kept
  Clock::time_point last_;       // when the previous iteration was done
  bool resumes_ = true;          // something other than iterations has run since
};

void run_worker(const Task& task, const DataSplit& data, const TrainOptions& o,
                const Compressor& compressor, Communication& communication, const MergePlan* plan,
                const std::vector<Trait>& made_for, Resumed resumed, Summary& summary,
                Outputs* outputs) {
  const Length length(data, o, resumed.iteration);
  std::optional<Worker> worker;
  together(communication,
           [&] { worker.emplace(task, data, o, length, compressor, communication, plan); });
  require_same_start(communication, worker->parameters());
  const bool first = communication.transport().rank() == 0;
  summary.parameters = worker->parameters().count();
  summary.gradient_count = worker->parameters().gradients().count();
  if (const Codec* codec = worker->codec()) {
    summary.plain_elements = codec->plain_elements();
    summary.encodes_on_device = codec->on_device();
  }
  summary.warmup = length.warmup;
  summary.cold = length.cold;
  if (first) outputs->say(what_runs(summary, data, length.done));
  summary.network = calibrate_all(communication, o, length, compressor);

  Coordination coordination(coordinated_run(task.app, made_for, o, length), o, communication,
                            worker->replica().device());
  std::int64_t sent_before = 0;
  try {
    Training training(*worker, data, o, length, communication, coordination, sent_before, summary,
                      outputs);
    load(communication, resumed, training);
    summary.starts.push_back(length.done);
    if (first) outputs->begin(length.done);
    training.run();
    coordination.finish();
  } catch (const SaidElsewhere&) {  // another rank reports it; no communication is pending
    throw;
  } catch (const std::exception& e) {
    communication.stop(e.what());  // pending communication uses the worker
    throw;
  }
  if (const std::string broken = first_not_finite(worker->parameters()); !broken.empty())
    throw Diverged("training diverged: {} is no longer finite; try a lower --lr", broken);

  summary.skipped = gather_skipped(communication, o.workers, data);
  RankReport report{.bytes_sent = sent_before};
  worker->report(report);
  summary.ranks = gather_reports(communication, std::move(report), worker->spans());
  if (!first) return;
  summary.weights_hash = weights_hash(worker->parameters());
  summary.checkpoints = coordination.account();
  if (!o.profile.empty()) summary.profile = profile_of(summary, worker->parameters());
  outputs->finish(summary, worker->parameters());
}

}  // namespace

Summary train(const Task& task, const TrainOptions& options) {
  TrainOptions o;
  try {
    o = check_options(options);
  } catch (const UserError&) {
    leave_before_ranks(task.app, std::current_exception());
    throw;
  }
  const std::vector<Trait> same = traits_of(task.app, o);
  const Choices choices = choices_of(o);
  o.algo = choices.algos.front();
  o.compress = choices.compressions.front();
  Summary result;
  if (!o.predict.empty()) {
    predict(task, o);
    return result;
  }
  // Ranks that are threads share the data. Ranks that are processes load their own.
  std::optional<DataSplit> data;
  std::optional<Outputs> outputs;
  std::optional<MergePlan> plan;
  std::vector<Trait> made_for;  // what a checkpoint of this run says, and must say to be resumed
  std::optional<Interruptible> interruptible;
  std::atomic<int> stopped = 0;  // the number of the signal
  const auto open = [&] {
    data = open_data(task, o, outputs, plan);
    if (!o.checkpoint.empty() || !o.resume.empty()) made_for = traits_to_resume(task.app, o, *data);
    interruptible.emplace();
  };
  if (!mpi_launch()) open();
  if (o.device != DeviceKind::cpu) expect_cuda_workers(mpi_launch() ? 1 : o.workers);
  run_on_ranks({.app = task.app,
                .ranks = o.workers + strategy_named(o.algo).servers(o.algo_options),
                .link = parse_link(o.link),
                .ranks_per_node = o.ranks_per_node,
                .stall_timeout_s = o.stall_timeout,
                .computes_elsewhere = o.device != DeviceKind::cpu,
                .same = same},
               [&](Communication& communication) {
                 if (mpi_launch()) {
                   together(communication, open);
                   require_same_data(communication, *data);
                 }
                 const int rank = communication.transport().rank();
                 Resumed resumed = resume(task.app, o, made_for, communication);
                 const Chosen chosen = choose(task, *data, o, choices, communication);
                 TrainOptions own = o;
                 own.algo = chosen.algo;
                 own.compress = chosen.compress;
                 const auto compressor = make_compressor(compressor_in_ring(own.compress));
                 if (rank >= o.workers) {
                   stopped = run_server(task, *data, own, *compressor, communication, made_for,
                                        std::move(resumed));
                   return;
                 }
                 if (rank == 0 && !chosen.text.empty()) outputs->say(chosen.text);
                 Summary summary{.app = task.app,
                                 .net = task.net.empty() ? task.app : task.net,
                                 .options = own,
                                 .data = data->description};
                 run_worker(task, *data, own, *compressor, communication, plan ? &*plan : nullptr,
                            made_for, std::move(resumed), summary, outputs ? &*outputs : nullptr);
                 stopped = summary.stopped_by;
                 if (rank == 0) result = std::move(summary);
               });
  // Only after all ranks have finished: no other rank can mistake this for a failed rank.
  if (outputs) outputs->throw_if_any_failed();
  if (stopped != 0) throw Interrupted(stopped, after_interruption(o, result.iterations));
  return result;
}

}  // namespace tandem

#include "train/trainer.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <optional>

#include "base/thread_pool.h"
#include "dist/launch.h"
#include "dist/param_server/server.h"
#include "dist/timing/calibration.h"
#include "dist/timing/clock_offset.h"
#include "dist/transport/collectives.h"
#include "dist/transport/mpi_launch.h"
#include "tensor/cuda/cuda_backend.h"
#include "train/agreement.h"
#include "train/check_options.h"
#include "train/outputs.h"
#include "train/progress.h"
#include "train/weights.h"
#include "train/worker.h"

namespace tandem {
namespace {

// What all workers have found since the last test; only rank 0 uses it.
struct Findings {
  std::vector<double> losses;  // by iteration
  Worker::Tested tested;
  double objective = 0;  // with --objective

  double mean_loss() const {
    double sum = 0;
    for (const double loss : losses) sum += loss;
    return losses.empty() ? 0 : sum / static_cast<double>(losses.size());
  }
};

// A worker's share of a run.
class Training {
 public:
  Training(Worker& worker, const DataSplit& data, const TrainOptions& o,
           Communication* communication, Summary& summary, Outputs* outputs)
      : worker_(worker),
        length_(data, o),
        o_(o),
        communication_(communication),
        summary_(summary),
        outputs_(outputs),
        progress_(o.quiet || !first(), length_.iterations,
                  length_.tests_by_epochs() ? epoch_of(length_.iterations) : 0,
                  [this](const std::string& line) { outputs_->say(line); }) {}

  void run() {
    std::vector<double> losses;  // this worker's parts of them, since the last test
    auto last = Clock::now();    // when the iteration before was done
    for (std::int64_t t = 1; t <= length_.iterations; ++t) {
      const bool tests = t % length_.iterations_per_test == 0 || t == length_.iterations;
      const bool pauses = tests || verifies_at(t, tests);
      worker_.step(t);
      // A GPU is given iterations ahead, so the host sees each one finished some iterations late,
      // and the last ones all at once. Timing begins after the cold iterations: all of them must be
      // finished there, or the time between would be that of fewer iterations than are counted.
      const bool all = pauses || t == length_.cold;
      for (const auto& [loss, at] : worker_.take_done(all)) {
        losses.push_back(loss);
        const double seconds = seconds_between(std::exchange(last, at), at);
        summary_.wall_s += seconds;
        summary_.iteration_ms.push_back(1e3 * seconds);
        ++summary_.iterations;
        if (!std::isfinite(loss)) worker_.report_divergence(summary_.iterations, loss);
      }
      if (!losses.empty()) progress_.step(t, losses.back() * o_.workers, samples_per_s_so_far());
      if (t == length_.iterations) {
        worker_.finish();
        summary_.wall_s += seconds_between(last, Clock::now());
      }
      if (!pauses) continue;
      tests ? test(t, std::exchange(losses, {})) : verify(t, false);
      last = Clock::now();
    }
    if (length_.iterations == 0) test(0, {});
  }

 private:
  bool first() const { return worker_.rank() == 0; }
  double samples_per_s_so_far() const {
    return summary_.wall_s > 0
               ? static_cast<double>(summary_.iterations * o_.batch) / summary_.wall_s
               : 0;
  }

  void test(std::int64_t t, std::vector<double> losses) {
    share_statistics();
    if (verifies_at(t, true)) verify(t, true);
    const Findings found =
        collect({std::move(losses), worker_.test(), o_.objective ? worker_.objective() : 0});
    if (found.tested.samples == 0)
      throw UserError("none of the test images can be decoded, so nothing can be tested");
    if (!first()) return;
    const std::int64_t before = t - static_cast<std::int64_t>(found.losses.size());
    for (std::int64_t i = before + 1; i <= t; ++i)
      outputs_->iteration(i, epoch_of(i), found.losses[static_cast<std::size_t>(i - before - 1)],
                          worker_.rate(i), summary_.iteration_ms[static_cast<std::size_t>(i - 1)]);
    summary_.train_loss = found.mean_loss();
    summary_.test_accuracy =
        static_cast<double>(found.tested.correct) / static_cast<double>(found.tested.samples);
    if (o_.objective) summary_.objective = found.objective;
    if (t == 0) return;
    outputs_->test(epoch_of(t), t, summary_.train_loss, summary_.test_accuracy, summary_.objective,
                   summary_.wall_s);
    progress_.test(t, epoch_of(t), summary_.train_loss, summary_.test_accuracy,
                   samples_per_s_so_far());
  }
  std::int64_t epoch_of(std::int64_t iteration) const {
    return (iteration - 1) / length_.iterations_per_epoch + 1;
  }

  // Every worker measures on its own part of the batches; from here on all have the mean, so that
  // what is tested and saved does not depend on the rank.
  void share_statistics() {
    std::vector<double> values = worker_.statistics();
    if (!communication_ || values.empty()) return;
    communication_->call([&] { sum_over_ranks(communication_->transport(), o_.workers, values); });
    for (double& value : values) value /= o_.workers;
    worker_.set_statistics(values);
  }

  // The algorithms are synchronous: after as many iterations, all workers have the same weights.
  bool verifies_at(std::int64_t t, bool tests) const {
    if (!communication_ || o_.verify_every == 0) return false;
    if (o_.verify_every == kAtEveryTest) return tests;
    return t % o_.verify_every == 0 || t == length_.iterations;
  }
  void verify(std::int64_t t, bool with_statistics) {
    require_same_weights(*communication_, o_.workers, worker_.parameters(), with_statistics, t);
  }

  // Adds up what the workers have, and lets the servers go on.
  Findings collect(Findings own) {
    if (!communication_) return own;
    own.losses.insert(own.losses.end(), {own.objective, static_cast<double>(own.tested.correct),
                                         static_cast<double>(own.tested.samples)});
    communication_->call([&] {
      Transport& transport = communication_->transport();
      sum_over_ranks(transport, o_.workers, own.losses);
      if (first())
        for (int rank = o_.workers; rank < transport.size(); ++rank)
          transport.send_and_wait(rank, Tag::control, {});
    });
    const std::size_t last = own.losses.size() - 1;
    own.tested = {.samples = static_cast<std::int64_t>(own.losses[last]),
                  .correct = static_cast<std::int64_t>(own.losses[last - 1])};
    own.objective = own.losses[last - 2];
    own.losses.resize(last - 2);
    return own;
  }

  Worker& worker_;
  Length length_;
  const TrainOptions& o_;
  Communication* communication_;
  Summary& summary_;
  Outputs* outputs_;  // of the first worker
  Progress progress_;
};

// A server's share of a run, on the communication thread. It rests while the workers test.
void serve(const Length& length, Transport& transport, ParameterServer& server) {
  std::int64_t served = 0;
  do {
    const std::int64_t last = std::min(served + length.iterations_per_test, length.iterations);
    server.serve(served + 1, last);
    served = last;
    Request tested = transport.receive(0, Tag::control, {});
    transport.wait(tested, Patience::while_others_work);
  } while (served < length.iterations);
}

std::string what_runs(const Summary& s, const std::string& net, const DataSplit& data) {
  const TrainOptions& o = s.options;
  const auto count = [](int n, const char* of) {
    return fmt::format("{} {}{}", n, of, n == 1 ? "" : "s");
  };
  std::string text = fmt::format("data: {}: {} training and {} test images\n", s.data,
                                 data.train->size(), data.test->size());
  for (const std::string& line : data.left_out) text += fmt::format("data: {}\n", line);
  text += fmt::format("model: {}, {} parameters; {}, {}{}, {}{}, batch {}\n", net, s.parameters,
                      o.algo, count(o.workers, "worker"),
                      o.algo == "ps-sync" ? " and " + count(o.servers, "server") : "",
                      o.device == "cpu" ? count(o.threads, "thread") : "cuda " + o.precision,
                      o.workers > 1 ? " each" : "", o.batch);
  if (o.algo != "single")
    text += fmt::format("network: {}, link {}, compression {}\n", mpi_launch() ? "MPI" : "threads",
                        o.link, o.compress);
  if (s.warmup > 0)
    text += fmt::format(
        "pipeline: opens after {} iterations of d-sync (--warmup-epochs, --warmup-iterations)\n",
        s.warmup);
  return text;
}

std::int64_t bytes_sent(const Transport& t) {
  return t.bytes_sent(Tag::ring) + t.bytes_sent(Tag::push) + t.bytes_sent(Tag::pull);
}

// Rank 0 learns what all ranks have measured.
std::vector<RankReport> collect(Communication& communication, RankReport own,
                                const Spans& compute) {
  return communication.call([&] {
    Transport& transport = communication.transport();
    own.rank = transport.rank();
    own.bytes_sent = bytes_sent(transport);
    own.take(compute, communication.spans(), clock_offset(transport));
    std::vector<RankReport> reports;
    for (const Bytes& bytes : gather(transport, transport.size(), to_bytes(own)))
      reports.push_back(rank_report_from(bytes));
    return reports;
  });
}

// The images that any worker has skipped; complete on rank 0.
std::set<std::string> collect_skipped(const DataSplit& data, int workers,
                                      Communication* communication) {
  if (!data.skipped) return {};
  std::set<std::string> all = data.skipped->all();
  if (!communication) return all;
  Bytes own;
  for (const std::string& what : all) {
    const auto bytes = std::as_bytes(std::span(what.c_str(), what.size() + 1));
    own.insert(own.end(), bytes.begin(), bytes.end());
  }
  communication->call([&] {
    for (const Bytes& bytes : gather(communication->transport(), workers, own))
      for (std::size_t at = 0; at < bytes.size();
           at += std::strlen(reinterpret_cast<const char*>(bytes.data()) + at) + 1)
        all.insert(reinterpret_cast<const char*>(bytes.data()) + at);
  });
  return all;
}

// All ranks together, servers too.
NetworkCost calibrate_all(Communication& communication, const TrainOptions& o, const Length& length,
                          const Compressor& compressor) {
  return communication.call([&] {
    if (o.keeps_spans()) communication.spans().keep_events();
    communication.spans().count_from(length.cold + 1);
    Transport& transport = communication.transport();
    return calibrate(transport, transport.size(), compressor, o.device == "cpu");
  });
}

void run_server(const Task& task, const DataSplit& data, const TrainOptions& o,
                const Compressor& compressor, Communication& communication) {
  const Length length(data, o);
  std::optional<Replica> replica;
  // A server only adds and updates, in host memory, whatever the workers compute with. Where that
  // is a GPU, it takes the cores that add messages.
  TrainOptions own = o;
  own.precision = "fp32";
  if (o.device != "cpu") own.threads = communication.transport().helpers()->threads();
  together(communication, [&] { replica.emplace(task, data, own, cpu_device(own.threads)); });
  require_same_start(communication, replica->parameters());
  calibrate_all(communication, o, length, compressor);
  communication.call([&] {
    Transport& transport = communication.transport();
    ParameterServer server(transport, o.workers, o.servers, replica->parameters(),
                           replica->optimizer(), compressor, communication.spans());
    serve(length, transport, server);
  });
  collect(communication, {.server = true}, Spans());
}

void run_worker(const Task& task, const DataSplit& data, const TrainOptions& o,
                const Compressor& compressor, Communication* communication, Summary& summary,
                Outputs* outputs) {
  std::optional<Worker> worker;
  const auto make = [&] { worker.emplace(task, data, o, compressor, communication); };
  communication ? together(*communication, make) : make();
  if (communication) require_same_start(*communication, worker->parameters());
  const bool first = worker->rank() == 0;
  summary.parameters = worker->parameters().count();
  summary.gradient_count = worker->parameters().gradients().count();
  const Length length(data, o);
  summary.warmup = length.warmup;
  summary.cold = length.cold;
  worker->spans().count_from(length.cold + 1);
  if (first) {
    outputs->begin();
    outputs->say(what_runs(summary, task.net.empty() ? task.app : task.net, data));
  }
  if (communication) summary.network = calibrate_all(*communication, o, length, compressor);

  try {
    Training(*worker, data, o, communication, summary, outputs).run();
  } catch (const SaidElsewhere&) {  // the rank that says it ends the job; no jobs are under way
    throw;
  } catch (const std::exception& e) {
    if (communication) communication->stop(e.what());  // its jobs use the worker
    throw;
  }
  if (const std::string broken = first_not_finite(worker->parameters()); !broken.empty())
    throw Diverged("training diverged: {} is not finite any more; try a lower --lr", broken);

  summary.skipped = collect_skipped(data, o.workers, communication);
  if (communication) {
    summary.ranks = collect(*communication, {}, worker->spans());
  } else {
    RankReport report;
    report.take(worker->spans(), Spans(), {});
    summary.ranks = {report};
  }
  if (!first) return;
  summary.weights_hash = weights_hash(worker->parameters());
  outputs->finish(summary, worker->parameters());
}

// What can be known to fail before training. Only the first rank has outputs.
DataSplit open_data(const Task& task, const TrainOptions& o, std::optional<Outputs>& outputs) {
  if (is_first_rank()) outputs.emplace(task.app, o, task.features);
  DataSplit data = task.data();
  const bool trains = o.epochs > 0 || o.iterations > 0;
  if (trains && o.batch > data.train->size())
    throw UserError("--batch {} is larger than the training set of {} samples", o.batch,
                    data.train->size());
  return data;
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
  Summary result;
  std::optional<Outputs> outputs;
  const auto compressor = make_compressor(o.compress);
  const auto run = [&](const DataSplit& data, Communication* communication) {
    const int rank = communication ? communication->transport().rank() : 0;
    if (rank >= o.workers) return run_server(task, data, o, *compressor, *communication);
    Summary summary{.app = task.app, .options = o, .data = data.description};
    run_worker(task, data, o, *compressor, communication, summary, outputs ? &*outputs : nullptr);
    if (rank == 0) result = std::move(summary);
  };
  if (o.algo == "single") {
    run(open_data(task, o, outputs), nullptr);
    outputs->throw_if_any_failed();
    return result;
  }
  // Threads share the data, processes have it each.
  std::optional<DataSplit> data;
  const auto open = [&] { data = open_data(task, o, outputs); };
  if (!mpi_launch()) open();
  if (o.device != "cpu") expect_cuda_workers(mpi_launch() ? 1 : o.workers);
  run_on_ranks({.app = task.app,
                .ranks = o.workers + (o.algo == "ps-sync" ? o.servers : 0),
                .link = parse_link(o.link),
                .stall_timeout_s = o.stall_timeout,
                .computes_elsewhere = o.device != "cpu",
                .same = traits_of(task.app, o)},
               [&](Communication& communication) {
                 if (mpi_launch()) {
                   together(communication, open);
                   require_same_data(communication, *data);
                 }
                 run(*data, &communication);
               });
  // Only now: no rank is left that would take it for the failure of a rank.
  if (outputs) outputs->throw_if_any_failed();
  return result;
}

}  // namespace tandem

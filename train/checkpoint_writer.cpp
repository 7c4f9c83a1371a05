#include "train/checkpoint_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/monitor.h"
#include "base/queue.h"

namespace tandem {

struct CheckpointWriter::Shared {
  Shared(std::string the_app, std::string the_folder, int the_rank)
      : app(std::move(the_app)), folder(std::move(the_folder)), rank(the_rank) {}

  std::string app, folder;
  int rank;
  struct Progress {
    Status status;
    int jobs = 0;  // not done
  };
  Monitor<Progress> progress;
  BlockingQueue<std::function<void()>> jobs;

  bool idle_until(Clock::time_point time) {
    return progress.wait_until(time, [](const Progress& p) { return p.jobs == 0; });
  }

  // Runs job() on the thread, and then done(status, succeeded).
  template <class Job, class Done>
  void post(std::int64_t iteration, Job job, Done done) {
    progress.change([](Progress& p) { ++p.jobs; });
    jobs.put([this, iteration, job = std::move(job), done = std::move(done)]() mutable {
      bool succeeded = true;
      try {
        job();
      } catch (const std::exception& e) {
        succeeded = false;
        std::fputs(fmt::format("{}: rank {}: the checkpoint of iteration {} could not be written: "
                               "{}; training goes on\n",
                               app, rank, iteration, e.what())
                       .c_str(),
                   stderr);
      }
      progress.change([&](Progress& p) {
        done(p.status, succeeded);
        --p.jobs;
      });
    });
  }
};

CheckpointWriter::CheckpointWriter(std::string app, std::string folder, int rank)
    : shared_(std::make_shared<Shared>(std::move(app), std::move(folder), rank)),
      thread_(start_thread("checkpoints", Work::computes, [shared = shared_] {
        while (const auto job = shared->jobs.take_if_open()) (*job)();
      })) {}

CheckpointWriter::~CheckpointWriter() {
  constexpr double kPatience = 10;
  shared_->jobs.close();
  if (!shared_->idle_until(Clock::now() + from_seconds(kPatience))) thread_.detach();
}

CheckpointWriter::Status CheckpointWriter::status() {
  return shared_->progress.look([](const Shared::Progress& p) { return p.status; });
}

CheckpointWriter::Status CheckpointWriter::wait(double timeout_s) {
  if (!shared_->idle_until(Clock::now() + from_seconds(timeout_s)))
    throw SystemError("a checkpoint in {} could not be written within {} seconds (--stall-timeout)",
                      shared_->folder, timeout_s);
  return status();
}

void CheckpointWriter::write(std::int64_t iteration, std::shared_ptr<const Snapshot> state,
                             std::function<void()> before) {
  shared_->progress.change([](Shared::Progress& p) { p.status.is = Status::Is::writing; });
  struct Written {
    CheckpointFile file;
    double seconds = 0;
  };
  const auto written = std::make_shared<Written>();
  shared_->post(
      iteration,
      [=, shared = shared_.get(), state = std::move(state), before = std::move(before)]() mutable {
        const auto begin = Clock::now();
        before();
        state->wait();
        written->file =
            write_rank_file(checkpoint_folder(shared->folder, iteration), shared->rank, *state);
        state.reset();  // its memory serves the next checkpoint
        written->seconds = seconds_between(begin, Clock::now());
      },
      [written](Status& status, bool succeeded) {
        status.is = succeeded ? Status::Is::written : Status::Is::failed;
        status.file = written->file;
        status.write_s = written->seconds;
      });
}

void CheckpointWriter::complete(const Manifest& manifest, std::int64_t keep) {
  const auto keep_from = std::make_shared<std::int64_t>(0);
  shared_->post(
      manifest.iteration,
      [=, shared = shared_.get()] {
        write_manifest(checkpoint_folder(shared->folder, manifest.iteration), manifest);
        // Checkpoints of later iterations are those of a run that was resumed from an earlier one.
        auto kept = checkpoints_in(shared->folder);
        std::erase_if(kept, [&](std::int64_t i) { return i > manifest.iteration; });
        if (std::ssize(kept) <= keep) return;
        *keep_from = kept[kept.size() - static_cast<std::size_t>(keep)];
        // Also those that a killed run has not completed.
        for (const std::int64_t iteration : checkpoints_in(shared->folder, false))
          if (iteration < *keep_from)
            remove_checkpoint(checkpoint_folder(shared->folder, iteration));
      },
      [keep_from](Status& status, bool succeeded) {
        status.manifest_failed = !succeeded;
        status.keep_from = std::max(status.keep_from, *keep_from);
      });
}

void CheckpointWriter::remove_before(std::int64_t before) {
  shared_->post(
      before,
      [before, shared = shared_.get()] {
        for (const std::int64_t iteration : checkpoints_in(shared->folder, false))
          if (iteration < before)
            remove_rank_file(checkpoint_folder(shared->folder, iteration), shared->rank);
      },
      [](Status&, bool) {});
}

}  // namespace tandem

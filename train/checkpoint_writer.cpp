#include "train/checkpoint_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/clock.h"
#include "base/error.h"

namespace tandem {

CheckpointWriter::CheckpointWriter(std::string app, std::string folder, int rank)
    : app_(std::move(app)),
      folder_(std::move(folder)),
      rank_(rank),
      thread_(start_thread("checkpoints", Work::waits, [this] {
        while (const auto job = jobs_.take_if_open()) (*job)();
      })) {}

CheckpointWriter::~CheckpointWriter() { jobs_.close(); }

CheckpointWriter::Status CheckpointWriter::status() {
  return shared_.look([](const Shared& shared) { return shared.status; });
}

CheckpointWriter::Status CheckpointWriter::wait(double timeout_s) {
  const auto until = Clock::now() + from_seconds(timeout_s);
  if (!shared_.wait_until(until, [](const Shared& shared) { return shared.jobs == 0; }))
    throw SystemError(
        "a checkpoint in {} could not be written within {} seconds; see "
        "--stall-timeout",
        folder_, timeout_s);
  return status();
}

// `then` is the status if the job succeeds.
void CheckpointWriter::post(Status::Is then, std::int64_t iteration,
                            const std::function<void()>& job) {
  shared_.change([](Shared& shared) { ++shared.jobs; });
  jobs_.put([=, this] {
    auto is = then;
    try {
      job();
    } catch (const std::exception& e) {
      is = Status::Is::failed;
      std::fputs(fmt::format("{}: rank {}: the checkpoint of iteration {} could not be written: "
                             "{}; training goes on\n",
                             app_, rank_, iteration, e.what())
                     .c_str(),
                 stderr);
    }
    shared_.change([&](Shared& shared) {
      shared.status.is = is;
      --shared.jobs;
    });
  });
}

void CheckpointWriter::write(std::int64_t iteration, std::shared_ptr<const Snapshot> state) {
  shared_.change([](Shared& shared) { shared.status.is = Status::Is::writing; });
  post(Status::Is::written, iteration, [=, this]() mutable {
    const auto begin = Clock::now();
    state->wait();
    const CheckpointFile file =
        write_rank_file(checkpoint_folder(folder_, iteration), rank_, *state);
    state.reset();  // its memory serves the next checkpoint
    shared_.change([&](Shared& shared) {
      shared.status.file = file;
      shared.status.write_s = seconds_between(begin, Clock::now());
    });
  });
}

void CheckpointWriter::complete(const Manifest& manifest, std::int64_t keep) {
  post(Status::Is::idle, manifest.iteration, [=, this] {
    write_manifest(checkpoint_folder(folder_, manifest.iteration), manifest);
    const auto all = checkpoints_in(folder_);
    const std::int64_t keep_from =
        all[static_cast<std::size_t>(std::max<std::int64_t>(0, std::ssize(all) - keep))];
    // Also those that a killed run has not completed.
    for (const std::int64_t iteration : checkpoints_in(folder_, false))
      if (iteration < keep_from) remove_checkpoint(checkpoint_folder(folder_, iteration));
    shared_.change([&](Shared& shared) { shared.status.keep_from = keep_from; });
  });
}

void CheckpointWriter::remove_before(std::int64_t before) {
  jobs_.put([=, this] {
    for (const std::int64_t iteration : checkpoints_in(folder_, false))
      if (iteration < before) remove_rank_file(checkpoint_folder(folder_, iteration), rank_);
  });
}

}  // namespace tandem

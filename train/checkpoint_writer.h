// Writes a rank's checkpoints on a thread of its own, while the rank trains.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/monitor.h"
#include "base/queue.h"
#include "base/thread.h"
#include "train/checkpoint.h"

namespace tandem {

class CheckpointWriter {
 public:
  // `app` is for messages, which the writer prints on stderr.
  CheckpointWriter(std::string app, std::string folder, int rank);
  // Finishes what has begun.
  ~CheckpointWriter();

  // Where the newest checkpoint stands, on this rank.
  struct Status {
    enum class Is : std::int64_t { idle, writing, written, failed };
    Is is = Is::idle;
    CheckpointFile file;         // if it is written
    double write_s = 0;          // how long that took
    std::int64_t keep_from = 0;  // on rank 0: older checkpoints are no longer kept
  };
  Status status();
  // Waits until nothing is being written, and returns the status. Throws SystemError after this
  // many seconds.
  Status wait(double timeout_s);

  // Writes this rank's file. A failure is reported and then forgotten: training goes on.
  void write(std::int64_t iteration, std::shared_ptr<const Snapshot> state);
  // Rank 0, when all ranks have written their files: completes the checkpoint, and removes older
  // ones but the newest `keep`.
  void complete(const Manifest& manifest, std::int64_t keep);
  // Other ranks: removes this rank's files that are older.
  void remove_before(std::int64_t iteration);

 private:
  void post(Status::Is then, std::int64_t iteration, const std::function<void()>& job);

  std::string app_, folder_;
  int rank_;
  struct Shared {
    Status status;
    int jobs = 0;  // not done
  };
  Monitor<Shared> shared_;
  BlockingQueue<std::function<void()>> jobs_;
  Thread thread_;  // last: starts when the other members exist
};

}  // namespace tandem

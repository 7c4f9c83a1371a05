// Writes a rank's checkpoints on a thread of its own, while the rank trains.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/thread.h"
#include "train/checkpoint.h"

namespace tandem {

class CheckpointWriter {
 public:
  // `app` is for messages, which the writer prints on stderr.
  CheckpointWriter(std::string app, std::string folder, int rank);
  // Waits some seconds for what has begun, and then leaves it: a disk may hang forever.
  ~CheckpointWriter();

  // Where this rank's file of the last checkpoint stands.
  struct Status {
    enum class Is : std::int64_t { writing, written, failed };
    Is is = Is::written;
    CheckpointFile file;           // if it is written
    double write_s = 0;            // how long that took
    std::int64_t keep_from = 0;    // on rank 0: older checkpoints are removed
    bool manifest_failed = false;  // on rank 0: the last manifest could not be written
  };
  Status status();
  // Waits until nothing is being written, and returns the status. Throws SystemError after this
  // many seconds.
  Status wait(double timeout_s);

  // Calls `before` and writes this rank's file. A failure is printed, and training goes on.
  void write(std::int64_t iteration, std::shared_ptr<const Snapshot> state,
             std::function<void()> before);
  // Rank 0, when all ranks have written their files: completes the checkpoint, and removes older
  // ones, so that `keep` are left.
  void complete(const Manifest& manifest, std::int64_t keep);
  // Other ranks: removes this rank's files that are older.
  void remove_before(std::int64_t iteration);

 private:
  struct Shared;  // with the thread, which may outlive the writer

  std::shared_ptr<Shared> shared_;
  Thread thread_;
};

}  // namespace tandem

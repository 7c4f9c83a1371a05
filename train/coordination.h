// How the ranks agree on what to do besides training: when to save a checkpoint, when to stop
// because of a signal, and when a checkpoint is complete because every rank has written its part.
//
// About twice a second the ranks hold a meeting: each reports to rank 0, which decides for all. To
// disturb training little, a meeting is held by the communication threads after an iteration t, and
// its decisions hold after iteration t+1. Where a single iteration takes that long, the meeting is
// after every iteration, and its decisions hold at once.
//
// With asynchronous algorithms, a meeting makes fast workers wait for slow ones. So there are
// meetings only to decide about checkpoints that are due by time, and few of them. Their decisions
// hold at once, and a checkpoint is completed before training goes on. A signal ends such a run
// without a meeting, unless there is one at this moment (trainer.cpp).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/queue.h"
#include "dist/communication.h"
#include "train/checkpoint_writer.h"
#include "train/options.h"

namespace tandem {

class Coordination {
 public:
  // Every rank makes one, servers included. The run has the iterations `first` to `last`; the first
  // meeting is after the iteration `first_meeting`. `made_for` goes into manifests. Copies of
  // tensors of `device` are saved. The references must outlive the object and all jobs of the
  // communication thread.
  struct Run {
    std::string app;
    std::vector<Trait> made_for;
    std::int64_t first = 1, last = 0, first_meeting = 1;
    bool asynchronous = false;
  };
  Coordination(const Run& run, const TrainOptions& options, Communication& communication,
               const Device& device);

  // What all ranks do after an iteration.
  struct Orders {
    bool checkpoint = false;
    int stop = 0;  // the number of the signal that stops the run; 0: it goes on
  };
  // Every rank calls it after the same iterations: workers after each, servers after those that
  // next() returns. Call it before the iteration's test.
  Orders after(std::int64_t t);
  // The next iteration after t after which after() must be called.
  std::int64_t next(std::int64_t t) const;

  // Saves the rank's state after iteration t. `fill` makes the snapshot; it is written while
  // training goes on. If the checkpoint before is not complete yet, waits for it.
  // The writing thread first calls `before`.
  void save(
      std::int64_t t, const std::function<void(Snapshot&)>& fill,
      std::function<void()> before = [] {});
  // Call it at the end of the run. Waits until the last checkpoint is complete.
  void finish();

  // Of this run and rank.
  struct Account {
    std::int64_t checkpoints = 0;   // that are complete
    double bytes = 0, write_s = 0;  // of this rank's parts, in total
    std::string failure;            // of the last checkpoint; empty: it is complete
  };
  const Account& account() const { return account_; }

 private:
  struct Report {  // of a rank
    std::int64_t signal = 0;
    CheckpointWriter::Status::Is is = CheckpointWriter::Status::Is::written;
    CheckpointFile file;
  };
  struct Decision {  // of rank 0
    std::int64_t signal = 0;
    std::int64_t checkpoint = 0;    // whether to save one
    std::int64_t written = 0;       // whether all ranks have written the pending one, or failed
    std::int64_t failed_rank = -1;  // that could not; -1: none
    std::int64_t keep_from = 0;     // older checkpoints are removed
    std::int64_t iterations = 1;    // until the next meeting
  };

  void ask(std::int64_t t);
  void take_answer(std::int64_t t);
  void complete_pending(std::int64_t t);
  Decision hold_meeting(std::int64_t t, std::int64_t pending);
  Decision decide(std::int64_t t, std::int64_t pending, const std::vector<Report>& reports);
  double seconds_between_meetings() const;

  const TrainOptions& o_;
  Communication& communication_;
  Run run_;
  Device host_;
  std::unique_ptr<CheckpointWriter> writer_;  // null without --checkpoint

  std::int64_t next_meeting_;
  bool waits_for_answer_ = false;      // the next meeting's decisions hold at once
  std::optional<std::int64_t> asked_;  // the iteration of the meeting that is being held
  BlockingQueue<Decision> answers_;
  Orders orders_;             // given, but not carried out
  std::int64_t pending_ = 0;  // the iteration of a checkpoint that is not complete; 0: none
  std::int64_t keep_from_ = 0;
  Account account_;

  // Of the communication thread. Messages are not in hold_meeting(): if the job fails there, MPI
  // may still write them.
  Report report_;
  Decision decision_;
  std::vector<Report> reports_;
  Clock::time_point last_meeting_, last_checkpoint_;
  std::int64_t last_meeting_t_ = 0;
  std::int64_t interval_ = 1;  // iterations between meetings
};

}  // namespace tandem

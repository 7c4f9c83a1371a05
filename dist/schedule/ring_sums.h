// Sums slices on the ring, the most urgent slice first.
//
// All workers of a ring must sum in the same order, but their gradients become ready at different
// times. So the first worker chooses: before it begins a sum, it has told the others the number of
// the next slice, too. A worker that is not that far waits for its gradient.
//
//   first worker    |7|6 5  |1 |2      |      7: chosen first, because 6 was not ready
//   others          |7|6 5  |1 |2      |      1: overtakes what is left
//
// Compared with DirectSum, each slice takes 2(p-1) latencies, and nothing is sent between a sum and
// the next one.
#pragma once

#include <deque>
#include <set>
#include <utility>
#include <vector>

#include "base/queue.h"
#include "dist/gradient_sum.h"
#include "dist/schedule/slices.h"
#include "dist/strategy.h"

namespace tandem {

class RingSums : public SliceSums {
 public:
  // All workers have the same slices.
  RingSums(const StrategyContext& context, const std::vector<Slice>& slices);

  void begin(std::size_t stage, std::int64_t iteration, const EventPtr& ready) override;
  Summed take() override { return summed_.take(); }

 private:
  struct Part {
    Slice slice;
    GradientSum sum;
    Gradient gradient;  // of this iteration
    bool begun = false;
  };
  struct StageState {
    std::size_t first_part = 0, parts = 0;
    std::size_t left = 0;         // parts that are not summed in this iteration
    std::vector<EventPtr> ready;  // of the others
  };
  // The number of a slice for the other workers. It stays valid while it is sent.
  struct Told {
    std::uint64_t part;
    std::vector<Request> requests;
  };

  void run();
  template <class Enough>
  void take_begun(const Enough& enough);
  std::size_t choose();
  std::size_t hear();
  void sum(std::size_t part);

  StrategyContext c_;
  Transport& transport_;
  std::deque<Part> parts_;
  std::vector<StageState> stages_;

  // Between the threads.
  std::size_t begun_in_iteration_ = 0;  // by the compute thread
  BlockingQueue<std::size_t> begun_;    // stages
  BlockingQueue<Summed> summed_;

  // Of the communication thread.
  std::set<std::pair<std::int64_t, std::size_t>> open_;  // by urgency: begun, not chosen
  std::deque<Told> told_;                                // of the first worker: chosen, not summed
};

}  // namespace tandem

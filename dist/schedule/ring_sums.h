// Sums slices on the ring, the most urgent slice first.
//
// All workers of a ring must sum in the same order, but their gradients become ready at different
// times. So the first worker chooses the slices and tells the others their numbers, one slice ahead
// if the next one is ready. A worker whose gradient is not ready yet waits for it.
//
//   first worker    |7|6 5  |1 |2      |      7: chosen first, because 6 was not ready
//   others          |7|6 5  |1 |2      |      1: overtakes what is left
//
// Unlike with DirectSum, each slice takes 2(p-1) latencies, and a sum begins only when the one
// before it has ended.
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
  // All workers must be given the same slices.
  RingSums(const StrategyContext& context, const std::vector<Slice>& slices);

  void begin(std::size_t stage, std::int64_t iteration, const EventPtr& ready) override;

 private:
  struct Part {
    Slice slice;
    GradientSum sum;
    Gradient gradient;  // of this iteration
    bool begun = false;
  };
  struct StageState {
    std::size_t first_part = 0, parts = 0;
    std::size_t left = 0;         // parts that are not summed yet in this iteration
    std::vector<EventPtr> ready;  // of the parts that are summed
  };
  // The number of a slice, which is sent to the other workers. It must not move meanwhile.
  struct Told {
    std::uint64_t part;
    std::vector<Request> requests;
  };

  void run() override;
  template <class Enough>
  void take_begun(const Enough& enough);
  std::size_t choose();
  std::size_t hear();
  void sum(std::size_t part);

  std::deque<Part> parts_;
  std::vector<StageState> stages_;

  BlockingQueue<std::size_t> begun_;  // stages, by the compute thread

  // Of the communication thread.
  std::set<std::pair<std::int64_t, std::size_t>> open_;  // by urgency: begun, not chosen
  std::uint64_t heard_ = 0;  // of the others: not in hear(), where MPI might still write it
  std::deque<Told> told_;    // of the first worker: chosen, not summed
};

}  // namespace tandem

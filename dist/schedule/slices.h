// Slices: the units in which P3 communicates. A slice is a range of blocks of the flat gradient. It
// lies in one stage (stages.h), so all of it becomes ready at the same time.
#pragma once

#include <cstdint>
#include <vector>

#include "base/queue.h"
#include "dist/schedule/stages.h"
#include "dist/strategy.h"
#include "tensor/event.h"

namespace tandem {

struct Slice {
  std::size_t stage = 0;  // the stage that it is a part of
  BlockRange range;
  // Its place in the order of urgency, from 0 (not the rank of a process). Of slices with the same
  // rank, the earlier one goes first.
  std::int64_t rank = 0;
  // The number of the adder that adds all of it, from 0. kAll: each adder adds a part of it.
  static constexpr int kAll = -1;
  int adder = kAll;
};

// The functions below return the slices stage by stage, in the order in which the stages become
// ready. Within a stage, slices are in the order of the flat gradient.

// P3's slices: whole blocks, as many as fit into `size` elements, but at least one. A slice is as
// urgent as the parameter in it that forward uses first; `use` lists the parameters in that order.
std::vector<Slice> slices_of(const std::vector<Stage>& stages,
                             const std::vector<const Parameter*>& use, std::int64_t size);
// The slices of the baseline of P3's paper: one per stage. One of the adders adds it, but a stage
// of at least 10⁶ elements is divided between all of them.
std::vector<Slice> whole_stages(const std::vector<Stage>& stages, int adders);
// The same slices without urgency: first come, first served.
std::vector<Slice> in_order(std::vector<Slice> slices);

// Sums slices over all workers: the part that all ways have in common. The compute thread calls
// begin() and take().
class SliceSums {
 public:
  explicit SliceSums(const StrategyContext& context);
  virtual ~SliceSums() = default;

  // Call begin() for every stage of an iteration, in any order, as soon as its gradient is complete
  // or queued on a GPU. It does not block.
  virtual void begin(std::size_t stage, std::int64_t iteration, const EventPtr& ready) = 0;

  struct Summed {
    static constexpr std::size_t kNone = ~std::size_t{0};
    std::size_t stage = kNone;  // kNone: the communication of an iteration is over
    std::vector<EventPtr> ready;
  };
  // Waits until another stage is summed. Stages come in no particular order. The sum has replaced
  // the gradient when all events in `ready` have passed.
  Summed take() { return summed_.take(); }

 protected:
  // The communication of one iteration, a job for the communication thread. It puts every stage
  // into summed_.
  virtual void run() = 0;
  // begin() calls it at the end. The first of the stages of an iteration starts run(), the others
  // wake it.
  void has_begun(std::size_t stages);

  StrategyContext c_;
  Transport& transport_;
  BlockingQueue<Summed> summed_;

 private:
  std::size_t begun_in_iteration_ = 0;
};

}  // namespace tandem

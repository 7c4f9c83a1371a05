// Slices: the units in which P3 communicates. A slice is a range of blocks of the flat gradient. It
// lies in one stage (stages.h), so backward finishes it at one time.
#pragma once

#include <cstdint>
#include <vector>

#include "dist/schedule/stages.h"
#include "tensor/event.h"

namespace tandem {

struct Slice {
  std::size_t stage = 0;  // that it is a part of
  BlockRange range;
  std::int64_t rank = 0;  // in the order of urgency, from 0; of equal ranks, the earlier one
  // Of several adders, the one that adds all of it, from 0. kAll: each adds a part.
  static constexpr int kAll = -1;
  int adder = kAll;
};

// All cuttings have the slices of a stage in order, and the stages in the order in which they
// become ready.

// P3's: slices of about `size` elements. A slice is as urgent as the parameter in it that forward
// uses first; `use` lists the parameters in that order.
std::vector<Slice> slices_of(const std::vector<Stage>& stages,
                             const std::vector<const Parameter*>& use, std::int64_t size);
// The baseline's of P3's paper: a slice per stage. One of several adders adds it; a stage of at
// least 10⁶ elements is divided between all of them.
std::vector<Slice> whole_stages(const std::vector<Stage>& stages, int adders);
// The same slices without urgency: first come, first served.
std::vector<Slice> in_order(std::vector<Slice> slices);

// Sums slices over all workers. The compute thread makes all calls.
class SliceSums {
 public:
  virtual ~SliceSums() = default;

  // Call begin() for every stage of an iteration, in any order, as soon as its gradient is complete
  // or queued on a GPU. It does not block.
  virtual void begin(std::size_t stage, std::int64_t iteration, const EventPtr& ready) = 0;

  struct Summed {
    static constexpr std::size_t kNone = ~std::size_t{0};
    std::size_t stage = kNone;  // kNone: the communication of an iteration is over
    std::vector<EventPtr> ready;
  };
  // Waits for the next stage that is summed, in no particular order. The sum replaces the gradient
  // after all events in `ready`.
  virtual Summed take() = 0;
};

}  // namespace tandem

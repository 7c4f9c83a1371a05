// Predicts how long an iteration takes if the next forward pass waits layer by layer, as with P3.
//
//   compute    | forward | backward 4 3 2 1 |1  2     3     4 | backward …
//   network                         |4 |1 |2 |3 |4  |           4 in two slices; 1 overtakes
//                                          └─ forward of layer 1 waits for its sum
//
// When the network is free, it takes the most urgent slice of those whose stages backward has
// finished. Forward waits at the first use of a stage until its sum is there. Forward needs all
// sums, so they arrive before the next backward begins, and iterations do not overlap any further.
#pragma once

#include <cstdint>
#include <vector>

#include "dist/schedule/merge.h"
#include "dist/schedule/slices.h"

namespace tandem {

// A worker's computation in one iteration, without waits, in seconds since its start.
struct ComputeTimes {
  struct Use {
    double begins = 0;  // when forward uses a part of this stage for the first time
    std::size_t stage = 0;
  };
  std::vector<Use> uses;          // in the order of time
  std::vector<double> ready;      // by stage: when backward has finished it
  std::vector<double> update_of;  // by stage: the duration of its update
};

// A slice on its way.
struct Journey {
  std::size_t stage = 0;
  std::int64_t rank = 0;  // as Slice::rank
  double occupies = 0;    // for how many seconds its lane is busy
  double delay = 0;       // seconds from the end of that until the sum arrives
  int lane = 0;           // one journey at a time; lanes do not hinder each other
};

// The seconds of an iteration.
double iteration_with_priorities(const ComputeTimes& compute, const std::vector<Journey>& journeys);

// Who adds the slices.
enum class Via : std::int64_t { direct, servers, ring };

// How slices travel on a network where `cost` is the time of a ring's sum. `adders` is the number
// of ranks that add.
std::vector<Journey> journeys_of(const std::vector<Slice>& slices, const SumCost& cost, Via via,
                                 int workers, int adders);

}  // namespace tandem

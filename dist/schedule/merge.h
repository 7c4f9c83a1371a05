// Decides which gradients are sent together. Backward finishes gradients one after the other, from
// the last layer to the first. Each could be sent at once, but every message costs a fixed time a:
//
//   backward   |  4  |  3  |  2  |  1  |
//   each alone       |a 4 |a 3 |a 2 |a 1 |        the fixed cost is paid four times
//   all together                     |a 4 3 2 1|  nothing overlaps
//   merged           |a 4 |      |a 3 2 |a 1|     between the two: which groups are best?
//
// (Shi, Chu and Li, MG-WFBP: Efficient Data Communication for Distributed Synchronous SGD
// Algorithms, INFOCOM 2019.) Only neighbours are merged, so that a group is one range of the flat
// gradient.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "tensor/state.h"

namespace tandem {

// The smallest unit of communication, such as the gradient of one tensor.
struct TimedLayer {
  double ready = 0;  // when backward has finished it, in seconds since the start of the iteration
  double bytes = 0;
};
using Layers = std::vector<TimedLayer>;  // in the order in which they become ready

// The time of an all-reduce of M bytes: a + bM.
struct SumCost {
  double a = 0, b = 0;  // seconds, seconds per byte
  // Long sums hide latencies: each byte beyond this length takes long_b instead of b. 0: none does.
  double long_bytes = 0, long_b = 0;
  // A single message with all layers hides latencies and takes less than a + bM. Nothing is sent
  // during backward, which ends earlier if computation and communication share cores.
  double all = 0;        // its time; 0: not known
  double all_ready = 0;  // when backward ends; 0: when the last layer is ready
  double operator()(double bytes) const {
    const double beyond = long_bytes > 0 ? std::max(0.0, bytes - long_bytes) : 0;
    return a + b * (bytes - beyond) + long_b * beyond;
  }
};

// How many consecutive layers each message has.
using Groups = std::vector<std::size_t>;

Groups each_alone(const Layers& layers);    // WFBP: wait-free backpropagation
Groups all_together(const Layers& layers);  // one message after backward
// Groups of at least this many bytes, except the last one.
Groups of_size(const Layers& layers, double bytes);
// Theorem 1 of the paper: merges a layer with the next one if the next one is ready less than a
// after this one could be sent. It decides layer by layer and looks no further.
Groups by_theorem_1(const Layers& layers, const SumCost& cost);
// The groups with the shortest finish_time().
Groups optimal(const Layers& layers, const SumCost& cost);

// When the last sum is done, in seconds since the start of the iteration (Eq. 21). Messages are
// sent one after the other, in the order of the groups.
double finish_time(const Layers& layers, const Groups& groups, const SumCost& cost);

// A plan, and the measurements that it is based on. The algorithms of overlap.h make one while they
// run. With --plan, mg-wfbp and merge keep it in a file for later runs (train/plan_file.h).
struct MergePlan {
  Layers layers;
  std::vector<std::string> names;  // of the parameter that completes each layer
  SumCost cost;
  double update_s = 0;  // of all weights
  Groups groups;
  std::string file;  // where it was read from; empty: it was measured in this run

  // The seconds of an iteration with these groups, including the update of the last message. The
  // other updates overlap with communication.
  double predicted_s(const Groups& by) const;

  void visit(State& state);
};

// Fits a + bM to the times so that the largest relative error is as small as possible. A single
// time is all a.
struct SumTime {
  double bytes = 0, seconds = 0;
};
SumCost fit(const std::vector<SumTime>& times);

}  // namespace tandem

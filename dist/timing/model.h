// The timing models of the Pipe-SGD paper, section 3.1: the time of an iteration (Eq. 2 to 6
// without the factor T), in seconds and bytes.
#pragma once

#include <algorithm>
#include <string>

#include "dist/strategy_options.h"

namespace tandem {

// The cost of a transport, measured by calibrate().
struct NetworkCost {
  double alpha = 0;  // latency of a message
  double beta = 0;   // per byte on the wire, while all ranks send around the ring
  double gamma = 0;  // per byte of f32 gradient, to add it; on a CPU also to (de)compress it
  double sync = 0;   // S: the time of a barrier
};

// The computation time of a worker.
struct ComputeCost {
  double update = 0, forward = 0, backward = 0;
  double all() const { return update + forward + backward; }
};

// The second half of Eq. 5: a ring all-reduce of n bytes of gradient, n_wire on the wire. (Ranks
// on one machine without a link take less time: they need only two steps.)
inline double ring_time(const NetworkCost& c, int p, double n, double n_wire) {
  const double share = static_cast<double>(p - 1) / p;
  return 2 * (p - 1) * c.alpha + 2 * share * n_wire * c.beta + share * n * c.gamma + c.sync;
}

// The second half of Eq. 6: the same in L pieces that are sent one by one.
inline double ring_time_in_pieces(const NetworkCost& c, int p, double n, double n_wire,
                                  int pieces) {
  return ring_time(c, p, n, n_wire) + (pieces - 1) * (2 * (p - 1) * c.alpha + c.sync);
}

// A parameter server (not in the paper). It receives the gradients of p workers while it sends
// weights to them. The slower direction counts, plus two latencies. With more servers than workers,
// the workers' NICs (network cards) are the bottleneck.
inline double server_time(const NetworkCost& c, int p, int servers, double n, double n_wire) {
  const double per_server = static_cast<double>(p) / servers;
  return 2 * c.alpha + std::max(n, n_wire) * std::max(1.0, per_server) * c.beta +
         n * per_server * c.gamma;
}

// Eq. 2: D-Sync.
inline double sync_iteration(const ComputeCost& compute, double communication) {
  return compute.all() + communication;
}

// Eq. 3: Pipe-SGD with unlimited resources.
inline double ideal_pipe_iteration(const ComputeCost& compute, double communication, int k) {
  return (compute.all() + communication) / k;
}

// Eq. 4, and with ring_time() Eq. 5: Pipe-SGD with one compute and one communication resource.
inline double pipe_iteration(const ComputeCost& compute, double communication) {
  return std::max(compute.all(), communication);
}

// The input of predicted_iteration() (dist/strategies.h).
struct ModelInput {
  std::string algo;  // as --algo
  StrategyOptions options = {};
  int workers = 1;
  ComputeCost compute;  // of the slowest worker, which sets the pace
  NetworkCost network;
  double gradient_bytes = 0, wire_bytes = 0;  // n and n_wire
  int ranks_per_node = 1;                     // if they share NICs, there is no model
  double closed = 0;  // fraction of iterations before the pipeline opens; these are d-sync
};

}  // namespace tandem

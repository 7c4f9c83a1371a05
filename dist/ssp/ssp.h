// SSP, stale synchronous parallel SGD. A worker pushes every gradient, and applies it to its own
// copy of the weights as well. So it need not pull in every iteration. It pulls when its copy is
// too old: a copy for iteration t must have all workers' updates of iterations up to t-1-s
// (--staleness). The server answers when it has them. So no worker is more than s iterations ahead
// of the slowest one. README.md has the figure and the cost.
//
// With s = 0, workers would pull in every iteration, and wait for each other: that is PS-Sync, and
// PS-Sync is what runs then (strategies.cpp).
#pragma once

#include <cstdint>
#include <vector>

#include "dist/asp/asp.h"

namespace tandem {

class Ssp : public PushWorker {
 public:
  explicit Ssp(const StrategyContext& context);

  void before_step(std::int64_t t) override;
  void visit(State& state) override;

 private:
  void step(std::int64_t t) override;
  void pull(std::int64_t clock);

  // Of this worker's own copy. Its gradients are shares of the batch's, as for the server.
  Sgd optimizer_;
  std::int64_t staleness_;
  std::int64_t seen_ = 0;             // the copy has all updates up to this iteration
  std::vector<std::int64_t> clocks_;  // by server: what it had when it answered
  std::vector<Request> received_;     // by server
};

class SspServer : public AspServer {
 public:
  explicit SspServer(const StrategyContext& context);

  void finish() override;
  void visit(State& state) override;

 private:
  void take(const Push& push) override;
  void asked(int worker, std::int64_t clock) override;
  void answer();
  std::int64_t slowest() const;

  static constexpr std::int64_t kNothing = -1;
  std::int64_t staleness_;
  std::vector<double> clocks_;        // by worker: iterations that it has pushed
  std::vector<std::int64_t> asking_;  // by worker: its own clock when it asked, or kNothing
  std::vector<std::int64_t> told_;    // by worker: the clock that it is sent
  std::vector<Request> sent_;         // by worker
};

}  // namespace tandem

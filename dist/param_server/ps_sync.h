// PS-Sync on a worker: it pushes the gradient to the servers and pulls the new weights. It is the
// baseline for Pipe-SGD. README.md has the figure and the cost.
#pragma once

#include <memory>
#include <vector>

#include "dist/kept_weights.h"
#include "dist/param_server/push_during_backward.h"
#include "dist/param_server/shards.h"
#include "dist/strategy.h"

namespace tandem {

class PsSync : public Strategy {
 public:
  explicit PsSync(const StrategyContext& context);

  void before_step(std::int64_t t) override;
  void on_grad_ready(Parameter& parameter) override;
  bool wants_ready_events() const override { return during_backward_ != nullptr; }
  void after_backward(std::int64_t t) override;

  // For SSP with staleness 0. The servers' weights are those of every worker.
  void keep_weights(std::int64_t t) override;
  std::vector<Tensor> take_kept_weights() override { return kept_.take(); }
  void visit(State& state) override;

 private:
  StrategyContext c_;
  std::unique_ptr<Compressor> uncompressed_;
  std::unique_ptr<Staging> gradient_, weights_;
  KeptWeights kept_;
  std::unique_ptr<PushDuringBackward> during_backward_;  // null: it pushes after backward
  Shards shards_;
};

}  // namespace tandem

// A worker of the asynchronous algorithms with servers (push_server.h): what they have in common.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "dist/kept_weights.h"
#include "dist/param_server/push_during_backward.h"
#include "dist/param_server/push_server.h"
#include "dist/param_server/shards.h"
#include "dist/strategy.h"

namespace tandem {

class PushWorker : public Strategy {
 public:
  enum class Answers { none, weights };  // to a pushed gradient
  PushWorker(const StrategyContext& context, Answers answers);

  void before_step(std::int64_t t) override;
  void on_grad_ready(Parameter& parameter) final;
  bool wants_ready_events() const final { return during_backward_ != nullptr; }
  void after_backward(std::int64_t t) final {
    step(t);
    done_ = t;
  }
  // Tells the servers that this worker pauses.
  void settle() override;
  // Waits for the other workers, and takes the servers' weights.
  void finish() override;
  // The servers' weights.
  void keep_weights(std::int64_t t) override;
  std::vector<Tensor> take_kept_weights() override { return kept_.take(); }
  void visit(State& state) override;

 protected:
  virtual void step(std::int64_t t) = 0;

  // Pushes the gradient, or the rest of it, and waits until it is sent and answered.
  void push_gradient(std::int64_t t);
  // The same for any buffer like the flat gradient. If the servers answer, the answer goes to
  // `pulled`.
  void push(std::int64_t t, const Tensor& pushed, const Tensor* pulled);
  // Tells all servers. A job for the communication thread.
  void tell(const Notice& notice);

  StrategyContext c_;
  std::unique_ptr<Compressor> uncompressed_;
  std::unique_ptr<Staging> pushed_, pulled_;
  KeptWeights kept_;
  std::unique_ptr<PushDuringBackward> during_backward_;  // null: it pushes after backward
  Shards shards_;

 private:
  bool is_first() const { return c_.communication.transport().rank() == 0; }

  Answers answers_;
  std::int64_t done_ = 0, paused_at_ = 0;  // iterations
  Notice notice_;                          // the last one
  std::vector<Request> told_;              // by server
};

}  // namespace tandem

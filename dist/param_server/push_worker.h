// A worker of the asynchronous algorithms with servers (push_server.h): what they have in common.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "dist/kept_weights.h"
#include "dist/param_server/push_server.h"
#include "dist/param_server/shards.h"
#include "dist/strategy.h"

namespace tandem {

class PushWorker : public Strategy {
 public:
  explicit PushWorker(const StrategyContext& context);

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

  // Pushes a buffer like the flat gradient, and waits until it is sent. If the servers answer
  // pushes, receives the answer into `pulled`.
  void push(std::int64_t t, const Tensor& pushed, const Tensor* pulled = nullptr);
  // Tells all servers. A job for the communication thread.
  void tell(const Notice& notice);

  StrategyContext c_;
  std::unique_ptr<Compressor> uncompressed_;
  std::unique_ptr<Staging> pushed_, pulled_;
  KeptWeights kept_;
  Shards shards_;

 private:
  bool is_first() const { return c_.communication.transport().rank() == 0; }

  std::int64_t done_ = 0, paused_at_ = 0;  // iterations
  Notice notice_;                          // the last one
  std::vector<Request> told_;              // by server
};

}  // namespace tandem

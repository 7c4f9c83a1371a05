// ASP, asynchronous parallel SGD. A worker pushes its gradient and waits for the weights, as in
// PS-Sync. But the server applies each gradient when it arrives and answers at once, so no worker
// waits for another. README.md has the figure and the cost.
#pragma once

#include "dist/param_server/push_server.h"
#include "dist/param_server/push_worker.h"

namespace tandem {

class Asp : public PushWorker {
 public:
  explicit Asp(const StrategyContext& context) : PushWorker(context, Answers::weights) {}

 private:
  void step(std::int64_t t) override { push_gradient(t); }
};

// Updates its weights with each gradient by itself. A gradient is a worker's share of that of the
// whole batch, so p of them move the weights as far as one update of PS-Sync. Each applies 1/p of
// the weight decay. All share one momentum, which decays with every update.
class AspServer : public PushServer {
 public:
  explicit AspServer(const StrategyContext& context)
      : PushServer(context),
        optimizer_(context.optimizer.with_share_of_decay(1.0 / context.workers)) {}

 protected:
  void take(const Push& push) override {
    update(push);
    send_values(push.worker, push.segment);
  }
  void asked(int, std::int64_t) override {}  // workers never ask
  void update(const Push& push);

 private:
  Sgd optimizer_;
};

}  // namespace tandem

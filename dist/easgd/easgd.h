// EASGD, elastic averaging SGD. Every worker trains on its own samples with its own weights x. The
// servers hold the centre x̃. After every τ iterations (--period) a worker and the centre move
// towards each other, as if a spring joined them:
//
//   d = α (x - x̃);  x = x - d;  x̃ = x̃ + d
//
// So workers may explore, but not leave. With --momentum, this is EAMSGD. README.md has the figure
// and the cost.
#pragma once

#include <cstdint>

#include "dist/param_server/push_server.h"
#include "dist/param_server/push_worker.h"

namespace tandem {

// α (--elastic-rate). The default is the paper's 0.9/p, so that p workers that meet the centre
// together would move it by 0.9 of the way to their mean.
double elastic_rate(const StrategyContext& context);

class Easgd : public PushWorker {
 public:
  explicit Easgd(const StrategyContext& context)
      : PushWorker(context, Answers::none),
        centre_(context.parameters.values().clone()),
        period_(context.option("--period")),
        rate_(elastic_rate(context)) {}

  ~Easgd() override { shards_.cancel(); }  // before the centre

  GradientScale gradient_scale() const override { return GradientScale::local_batch; }

 private:
  void step(std::int64_t t) override;
  void meet_centre(std::int64_t t);

  Tensor centre_;  // as the servers have answered
  std::int64_t period_;
  double rate_;
};

class EasgdServer : public PushServer {
 public:
  explicit EasgdServer(const StrategyContext& context)
      : PushServer(context), period_(context.option("--period")), rate_(elastic_rate(context)) {}

 private:
  void take(const Push& push) override;
  bool pushes_in(std::int64_t iteration) const override { return iteration % period_ == 0; }
  void asked(int, std::int64_t) override {}  // workers never ask

  std::int64_t period_;
  double rate_;
};

}  // namespace tandem

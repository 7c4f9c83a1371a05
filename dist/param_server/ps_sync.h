// PS-Sync on a worker: it pushes the gradient to the servers and pulls the new weights. It is the
// baseline for Pipe-SGD. README.md has the figure and the cost.
#pragma once

#include <memory>
#include <vector>

#include "dist/strategy.h"
#include "tensor/staging.h"

namespace tandem {

class PsSync : public Strategy {
 public:
  explicit PsSync(const StrategyContext& context);

  void after_backward(std::int64_t t) override;

 private:
  // A segment in flight to its server and back.
  struct Exchange {
    Request pushed, pulled;
  };

  EventPtr push_and_pull(std::int64_t t, const EventPtr& ready);
  std::unique_ptr<Staging> stage(const Compressor& compressor) const;

  StrategyContext c_;
  int servers_;
  std::vector<Segment> segments_;  // each belongs to one server
  std::unique_ptr<Compressor> uncompressed_;
  std::unique_ptr<Staging> gradient_, weights_;
  std::vector<Exchange> exchanges_;  // by segment
};

}  // namespace tandem

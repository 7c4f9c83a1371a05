// AD-PSGD (Lian et al., 2018): while a worker computes a gradient, it averages its weights with
// those of a random neighbour. Nobody waits for a slow worker. README.md has the figure and the
// cost.
//
// A passive worker takes part in averages while it computes, also in several. So it has its model
// twice: forward and backward use the weights in the parameters, which do not change meanwhile; the
// communication thread answers with the model in host memory and averages it. The gradient's update
// is then a move, which is added to the model as it is by now. Both ends of an average compute the
// same bits, and moves are added to one model only. So an average does not change the mean over all
// workers, except for rounding.
#pragma once

#include <vector>

#include "base/monitor.h"
#include "base/random.h"
#include "dist/ad_psgd/topology.h"
#include "dist/gossip/gossip.h"

namespace tandem {

class AdPsgd : public Gossip {
 public:
  explicit AdPsgd(const StrategyContext& context);

  void before_step(std::int64_t t) override;
  void after_backward(std::int64_t t) override;

 protected:
  double share() const override { return 1.0 / c_.workers; }
  void take(Letter letter) override;
  void opening() override;
  void closed(std::vector<Letter> rest) override;
  Letter copy_of_weights(std::int64_t t) override;

 private:
  bool active() const { return is_active(rank_); }
  void ask(std::int64_t t);
  void average();
  void take_model();
  void add_move(std::int64_t t);

  Random random_;
  std::vector<int> neighbours_;  // of an active worker
  // Of a passive worker.
  Tensor before_;          // the weights before the update, then the move
  Monitor<Tensor> model_;  // in host memory; valid while the mail is open
};

}  // namespace tandem

// GoSGD (Blot et al., 2018): every worker trains on its own samples, and now and then sends its
// weights to a random other one, which mixes them with its own. Nobody waits. README.md has the
// figure and the cost.
#pragma once

#include <vector>

#include "base/random.h"
#include "dist/gossip/gossip.h"

namespace tandem {

class GoSgd : public Gossip {
 public:
  explicit GoSgd(const StrategyContext& context);

  void before_step(std::int64_t t) override;
  void after_backward(std::int64_t t) override;
  void visit(State& state) override;

 protected:
  double share() const override { return share_; }
  void take(Letter letter) override { mail().pass_on(std::move(letter)); }
  void closed(std::vector<Letter> rest) override {
    for (const Letter& letter : rest) mix_in(letter);
  }

 private:
  void mix_in(const Letter& letter);

  double probability_;
  Random random_;
  double share_;  // w in the paper
};

}  // namespace tandem

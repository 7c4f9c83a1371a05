// Pipe-SGD (Li et al., NeurIPS 2018, Alg. 1): the update of iteration t uses the gradients of
// iteration t-K, so that communication of one iteration overlaps computation of the next. README.md
// has the picture; pipe_sgd.cpp has the algorithm, line by line.
#pragma once

#include "base/queue.h"
#include "dist/gradient_sum.h"
#include "dist/strategy.h"

namespace tandem {

class PipeSgd : public Strategy {
 public:
  explicit PipeSgd(const StrategyContext& context);

  void before_step(std::int64_t t) override;
  void after_backward(std::int64_t t) override;
  void settle() override;
  void finish() override;

  void visit(State& state) override;

 private:
  void put_all(std::vector<Gradient> sums);
  Gradient take_sum();
  std::vector<Gradient> take_all();
  void apply(const Gradient& sum);

  StrategyContext c_;
  int k_;
  GradientSum sum_over_workers_;
  // Sums that are ready, oldest first. There are K gradients in total: in this queue, on the
  // communication thread, and one in the parameters during a step. Each belongs to one thread at a
  // time.
  BlockingQueue<Gradient> sums_;
};

}  // namespace tandem

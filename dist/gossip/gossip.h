// What GoSGD and AD-PSGD have in common. Every worker has its own weights and momenta, and
// exchanges weights with other workers by mail (mail.h), without waiting for all of them.
//
// A worker sends copies of its weights, which are in host memory. The weights themselves keep their
// place, so recorded steps of a GPU stay valid.
#pragma once

#include <memory>
#include <vector>

#include "base/monitor.h"
#include "dist/gossip/mail.h"
#include "dist/gradient_sum.h"
#include "dist/kept_weights.h"
#include "dist/strategy.h"
#include "tensor/staging.h"

namespace tandem {

class Gossip : public Strategy {
 public:
  explicit Gossip(const StrategyContext& context);

  GradientScale gradient_scale() const override { return GradientScale::local_batch; }

  // Closes the mail. All workers must call it, except one that fails because its weights are not
  // finite.
  void settle() override;
  // Sets the weights to the mean over all workers. Its time and bytes belong to no iteration.
  void finish() override;

  // Each worker sends its weights to the first one, which takes the mean over the workers of what
  // they had after the same number of iterations.
  void keep_weights(std::int64_t t) override;
  std::vector<Tensor> take_kept_weights() override;
  void visit(State& state) override;

 protected:
  // The share of this worker's weights in the mean of all. The shares sum to 1.
  virtual double share() const = 0;
  // The communication thread calls it for each letter with weights.
  virtual void take(Letter letter) = 0;
  // Before the mail opens, and after it has closed. The letters are those that were passed on.
  virtual void opening() {}
  virtual void closed(std::vector<Letter> rest) { (void)rest; }
  // A letter with a copy of this worker's weights.
  virtual Letter copy_of_weights(std::int64_t t);

  void open_mail(std::int64_t t);
  Mail& mail() { return mail_; }
  Backend& backend() const { return c_.parameters.device().backend(); }
  const Tensor& weights() const { return c_.parameters.values(); }
  // Copies values of this device to a letter's memory. They are there after the event.
  Tensor to_host(const Tensor& values, EventPtr& ready);
  // Sets the weights to values in host memory.
  void set_weights(const Tensor& values);
  // The weights = own·weights + other·values, which are in host memory.
  void mix(double own, double other, const Tensor& values);

  StrategyContext c_;
  int rank_;

 private:
  Tensor on_device(const Tensor& values);

  GradientSum sum_;
  std::int64_t last_ = 0;  // iteration
  Monitor<KeptMeans> kept_;
  // For a device that is not the host.
  std::unique_ptr<Staging> staging_;
  std::vector<Segment> whole_;
  Tensor landed_;
  EventPtr free_;  // after it, landed_ may be written
  Mail mail_;      // last: its job uses the other members
};

}  // namespace tandem

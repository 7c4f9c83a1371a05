// PowerSGD's sum: two all-reduces of thin matrices, with products between them. The host or the
// device that has the values makes the products.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "dist/all_reduce.h"
#include "dist/codecs/powersgd.h"
#include "tensor/low_rank_staging.h"

namespace tandem {

class PowerSum : public AllReduce {
 public:
  const std::vector<Segment>& segments() const override { return segments_; }

 protected:
  PowerSum(PowerSgd& codec, const Group& group, const BlockRange& range);

  // M ← M + residual; P = M·Q. Returns all P, then the plain values with what was left out of them.
  virtual std::span<float> multiply(Staging& values) = 0;
  // Q = Mᵀ·P; residual ← M - P·Qᵀ. Returns all Q.
  virtual std::span<float> multiply_transposed(Staging& values) = 0;
  // The values become P·Qᵀ and the plain values.
  virtual void put(Staging& values) = 0;

  std::span<float> p_of(std::size_t i, std::span<float> first) const;
  std::span<float> q_of(std::size_t i, std::span<float> second) const;

  PowerSgd& codec_;
  std::vector<Segment> segments_;
  std::vector<Rows> rows_;
  std::vector<std::size_t> p_places_, q_places_;
  std::vector<Segment> plain_;                         // stretches of the range
  std::size_t all_p_ = 0, all_q_ = 0, all_plain_ = 0;  // elements

 private:
  void run(Staging& values) override;
  void give_up(Staging& values) override {
    (void)values;  // the sums below give up by themselves
  }
  void keep_q(std::span<const float> second);

  std::unique_ptr<AllReduce> sum_first_, sum_second_;
};

class HostPowerSum : public PowerSum {
 public:
  HostPowerSum(PowerSgd& codec, const Group& group, const BlockRange& range);

 private:
  std::span<float> multiply(Staging& values) override;
  std::span<float> multiply_transposed(Staging& values) override;
  void put(Staging& values) override;

  std::vector<float> first_;   // all P, then the plain values
  std::vector<float> second_;  // all Q
};

class DevicePowerSum : public PowerSum {
 public:
  DevicePowerSum(PowerSgd& codec, const Group& group, const BlockRange& range)
      : PowerSum(codec, group, range) {}

  std::unique_ptr<Staging> make_staging() const override;

 private:
  std::span<float> multiply(Staging& values) override;
  std::span<float> multiply_transposed(Staging& values) override;
  void put(Staging& values) override;

  std::vector<float> q_;  // all Q of the iteration before
};

}  // namespace tandem

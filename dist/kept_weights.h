// Weights that an asynchronous run keeps while it goes on, to test them when it is over
// (Strategy::keep_weights()). Only the first worker has them.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "tensor/backend.h"
#include "tensor/device.h"
#include "tensor/state.h"
#include "tensor/tensor.h"

namespace tandem {

class KeptWeights {
 public:
  // Room for further weights, in host memory, to be filled by the caller.
  Tensor add(const Shape& shape) {
    return kept_.emplace_back(Tensor::zeros(shape, Dtype::f32, host_));
  }
  std::vector<Tensor> take() { return std::exchange(kept_, {}); }

  // `count`: elements of the flat values.
  void visit(State& state, std::int64_t count) {
    std::int64_t number = std::ssize(kept_);
    state("number of kept weights", number);
    while (std::ssize(kept_) < number) add({count});
    for (std::size_t i = 0; i < kept_.size(); ++i)
      state(fmt::format("kept weights {}", i), kept_[i]);
  }

 private:
  Device host_ = cpu_device();
  std::vector<Tensor> kept_;
};

// The same for algorithms whose workers have different weights: it keeps their mean. Weights come
// in any order, but are added in the order of the workers, so that the sum has the same bits.
class KeptMeans {
 public:
  explicit KeptMeans(int workers = 1) : next_(static_cast<std::size_t>(workers)) {}

  // Adds the next weights that this worker keeps, in host memory. `share` is their share in the
  // mean, relative to the other workers'.
  void add(int worker, double share, const Tensor& values) {
    const auto number =
        static_cast<std::size_t>(next_[static_cast<std::size_t>(worker)]++ - means_);
    if (number >= waiting_.size()) waiting_.resize(number + 1, Sum{.came = Came(next_.size())});
    waiting_[number].came[static_cast<std::size_t>(worker)] = {share, values};
    while (!waiting_.empty() && add_in_order(waiting_.front())) {
      waiting_.pop_front();
      ++means_;
    }
  }
  std::vector<Tensor> take() { return kept_.take(); }

  // Call it when all workers have kept equally often.
  void visit(State& state, std::int64_t count) { kept_.visit(state, count); }

 private:
  struct Part {
    double share = 0;
    Tensor values;  // undefined: not there, or already added
  };
  using Came = std::vector<Part>;  // by worker
  struct Sum {
    Came came;
    std::size_t added = 0;  // of them
    double shares = 0;      // of those that were added
    Tensor values = {};
  };

  // Returns whether the mean is complete.
  bool add_in_order(Sum& sum) {
    Backend& backend = host_.backend();
    for (; sum.added < sum.came.size(); ++sum.added) {
      const Part part = std::exchange(sum.came[sum.added], {});
      if (!part.values.defined()) return false;
      if (sum.added == 0) sum.values = Tensor::zeros(part.values.shape(), Dtype::f32, host_);
      backend.weighted_sum(1, sum.values, part.share, part.values, sum.values);
      sum.shares += part.share;
    }
    backend.weighted_sum(1 / sum.shares, sum.values, 0, sum.values, kept_.add(sum.values.shape()));
    return true;
  }

  Device host_ = cpu_device();
  std::vector<std::int64_t> next_;  // by worker: how often it has kept weights
  std::int64_t means_ = 0;          // complete ones, since this object was made
  std::deque<Sum> waiting_;         // the others
  KeptWeights kept_;
};

}  // namespace tandem

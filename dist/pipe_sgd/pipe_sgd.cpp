// The numbers in the comments are the lines of Alg. 1 in the paper: "compute" of the upper half, on
// the computation thread, "comm" of the lower half, on the communication thread. Line 2 of both is
// the training loop, lines 6 to 8 of the upper half (load a batch, forward, backward) are its step
// between before_step and after_backward.
//
// Decompression (compute 4) and compression (compute 9) are embedded in the ring and so done by the
// communication thread, where they are hidden behind computation like the rest of it. (A GPU does
// both itself, beside its computation.)
#include "dist/pipe_sgd/pipe_sgd.h"

#include <fmt/format.h>

#include <utility>

#include "tensor/backend.h"

namespace tandem {
namespace {

constexpr std::int64_t kNothing = 0;  // "iteration" of a sum that does not change the weights

}  // namespace

PipeSgd::PipeSgd(const StrategyContext& context)
    : c_(context),
      k_(static_cast<int>(context.option("--pipe-k"))),
      sum_over_workers_(context, k_) {
  // comm 1: the sums of the K iterations before the first are zero and ready. To update with zero
  // changes nothing (with momentum and weight decay too, by rule), so it is left out.
  const Tensor& like = c_.parameters.gradients();
  for (int k = 0; k < k_; ++k)
    sums_.put({kNothing, Tensor::zeros(like.shape(), like.dtype(), like.device()), {}});
}

void PipeSgd::before_step(std::int64_t) {
  // compute 3: wait until the sum of iteration t-K is ready.
  Gradient sum = take_sum();
  // compute 5: w[t] = w[t-1] - rate · sum[t-K].
  apply(sum);
  // Its memory takes the gradient of this step.
  c_.parameters.set_gradients(std::move(sum.values));
}

void PipeSgd::after_backward(std::int64_t t) {
  Gradient local{t, c_.parameters.gradients(), c_.parameters.device().backend().record_event()};
  if (t <= c_.warmup_iterations) {  // the pipeline is not open yet: as d-sync
    sum_over_workers_.wait_for(local);
    apply(local);
    local.iteration = kNothing;
    sums_.put(std::move(local));
    return;
  }
  sum_over_workers_.begin(local);  // on a GPU: compute 9, and the way to the host
  // compute 10: the local gradient is ready; from here on it belongs to the communication thread.
  c_.communication.post(sums_, [this, local = std::move(local)]() mutable {  // comm 3
    sum_over_workers_(local);                                                // comm 4
    return std::move(local);                                                 // comm 5
  });
}

void PipeSgd::settle() { put_all(take_all()); }

// Applies the last K sums, so that T iterations make T updates on every rank.
void PipeSgd::finish() {
  std::vector<Gradient> sums = take_all();
  for (Gradient& sum : sums) {
    apply(sum);
    sum.iteration = kNothing;
  }
  put_all(std::move(sums));
}

Gradient PipeSgd::take_sum() {
  const Spans::Scope span(c_.spans, SpanKind::wait);
  Gradient sum = sums_.take();
  c_.parameters.device().backend().wait_for(sum.ready);
  return sum;
}

void PipeSgd::apply(const Gradient& sum) {
  if (sum.iteration == kNothing) return;
  const Spans::Scope span(c_.spans, SpanKind::update);
  c_.optimizer.update(sum.iteration, sum.values);
}

// All K of them are taken before one is put back: the communication thread may still add to the
// queue.
std::vector<Gradient> PipeSgd::take_all() {
  std::vector<Gradient> sums;
  for (int k = 0; k < k_; ++k) sums.push_back(take_sum());
  return sums;
}

void PipeSgd::put_all(std::vector<Gradient> sums) {
  for (Gradient& sum : sums) sums_.put(std::move(sum));
}

void PipeSgd::visit(State& state) {
  std::vector<Gradient> sums = take_all();
  for (std::size_t k = 0; k < sums.size(); ++k) {
    state(fmt::format("iteration of sum {}", k), sums[k].iteration);
    state(fmt::format("sum {}", k), sums[k].values);
  }
  put_all(std::move(sums));
}

}  // namespace tandem

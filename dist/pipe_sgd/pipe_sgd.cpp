// The numbers in the comments are the lines of Alg. 1 in the paper: "compute" is its upper half, on
// the computation thread, and "comm" its lower half, on the communication thread. Line 2 of both is
// the training loop. Lines 6 to 8 of the upper half (load a batch, forward, backward) happen
// between before_step and after_backward.
//
// Decompression (compute 4) and compression (compute 9) are embedded in the ring. So the
// communication thread does them, and they are hidden behind computation like the rest of the ring.
// (A GPU does both itself, while it computes.)
#include "dist/pipe_sgd/pipe_sgd.h"

#include <fmt/format.h>

#include <utility>

#include "tensor/backend.h"

namespace tandem {
namespace {

constexpr std::int64_t kNothing = 0;  // the iteration of a sum that is not to be applied

}  // namespace

PipeSgd::PipeSgd(const StrategyContext& context)
    : c_(context),
      k_(static_cast<int>(context.option("--pipe-k"))),
      sum_over_workers_(context, k_) {
  // comm 1: the sums of the K iterations before the first one are zero and ready. An update with
  // zero is defined to change nothing, also with momentum and weight decay, so it is skipped.
  const Tensor& like = c_.parameters.gradients();
  for (int k = 0; k < k_; ++k)
    sums_.put({kNothing, Tensor::zeros(like.shape(), like.dtype(), like.device()), {}});
}

void PipeSgd::before_step(std::int64_t) {
  // compute 3: wait until the sum of iteration t-K is ready.
  Gradient sum = take_sum();
  // compute 5: w[t] = w[t-1] - rate · sum[t-K].
  apply(sum);
  // This step's gradient reuses the sum's memory.
  c_.parameters.set_gradients(std::move(sum.values));
}

void PipeSgd::after_backward(std::int64_t t) {
  Gradient local{t, c_.parameters.gradients(), c_.parameters.device().backend().record_event()};
  if (t <= c_.warmup_iterations) {  // the pipeline is not open yet; this is d-sync
    sum_over_workers_.wait_for(local);
    apply(local);
    local.iteration = kNothing;
    sums_.put(std::move(local));
    return;
  }
  sum_over_workers_.begin(local);  // on a GPU: compute 9, and the copy to the host
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

// Takes all K sums before the caller puts one back, because the communication thread may still add
// to the queue.
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

#include "dist/schedule/overlap.h"

#include <fmt/format.h>

#include <cstring>

#include "base/error.h"
#include "dist/transport/collectives.h"
#include "tensor/backend.h"

namespace tandem {
namespace {

// A GPU records the third step. The steps after it are measured.
constexpr std::int64_t kFirstMeasured = 4, kLastMeasured = 6;

void broadcast_groups(Communication& communication, int workers, Groups& groups) {
  communication.call([&] {
    Bytes bytes(groups.size() * sizeof(groups[0]));
    std::memcpy(bytes.data(), groups.data(), bytes.size());
    broadcast(communication.transport(), workers, bytes);
    groups.resize(bytes.size() / sizeof(groups[0]));
    std::memcpy(groups.data(), bytes.data(), bytes.size());
  });
}

}  // namespace

Overlap::Overlap(const StrategyContext& context, Merging merging)
    : c_(context), merging_(merging), times_(context.communication) {
  const BlockRange whole{.count = c_.parameters.values().count()};
  buckets_.push_back({{c_, whole, false}, whole, nullptr});
}

void Overlap::before_step(std::int64_t t) {
  t_ = t;
  ++step_;
  stages_.begin_step();
  buckets_started_ = 0;
  measures_ = step_ >= kFirstMeasured && step_ <= kLastMeasured;
  times_.begin_step();
}

void Overlap::on_grad_ready(Parameter& parameter) {
  if (!stages_.ready(parameter)) return;
  if (measures_) times_.stage_ready(parameter.ready);
  if (buckets_started_ < buckets_.size() && buckets_[buckets_started_].last == &parameter)
    start_next(parameter.ready);
}

void Overlap::start_next(const EventPtr& ready) {
  Bucket& bucket = buckets_[buckets_started_++];
  Gradient gradient{t_, c_.parameters.gradients().view(bucket.range.first(), {bucket.range.count}),
                    ready};
  bucket.sum.begin(gradient);
  c_.communication.post(sums_, [&bucket, gradient = std::move(gradient)]() mutable {
    bucket.sum(gradient);
    return std::move(gradient);
  });
}

void Overlap::after_backward(std::int64_t t) {
  if (!buckets_.front().last) start_next(c_.parameters.device().backend().record_event());
  require(buckets_started_ == buckets_.size(), "backward has finished {} buckets of {}",
          buckets_started_, buckets_.size());
  for (const Bucket& bucket : buckets_) {
    {
      const Spans::Scope span(c_.spans, SpanKind::wait);
      const Gradient sum = sums_.take();
      c_.parameters.device().backend().wait_for(sum.ready);
    }
    const Spans::Scope span(c_.spans, SpanKind::update);
    const auto begin = Clock::now();
    c_.optimizer.update_part(t, bucket.range.first(), bucket.range.count);
    if (measures_) update_s_ = seconds_between(begin, Clock::now());  // of the only bucket
  }
  if (measures_) times_.end_step();
  if (step_ == 1) stages_.learn(c_.parameters);
  if (step_ == kLastMeasured) make_plan();
}

// All workers have the same stages and the same means. The first worker decides, because arithmetic
// may differ between machines.
void Overlap::make_plan() {
  const Spans::Scope span(c_.spans, SpanKind::wait);
  const std::vector<double> ready = times_.of_all(c_.workers);
  Layers layers;
  for (std::size_t i = 0; i < ready.size(); ++i)
    layers.push_back({ready[i], static_cast<double>(stages_.all()[i].range.count) * sizeof(float)});
  const SumCost cost = measure_sum_cost(c_);
  Groups groups = merging_(layers, cost, c_);
  broadcast_groups(c_.communication, c_.workers, groups);
  cut(groups);
  plan_ = plan_of(layers, groups, cost);
}

// Predictions include the update of the last message. The other updates overlap communication.
CommunicationPlan Overlap::plan_of(const Layers& layers, const Groups& groups,
                                   const SumCost& cost) const {
  const auto predicted_s = [&](const Groups& by) {
    double last = 0, all = 0;
    for (std::size_t i = 0; i < layers.size(); ++i) {
      all += layers[i].bytes;
      if (i >= layers.size() - by.back()) last += layers[i].bytes;
    }
    return finish_time(layers, by, cost) + update_s_ * last / all;
  };
  CommunicationPlan plan{.predicted_s = predicted_s(groups)};
  for (const Bucket& bucket : buckets_) plan.elements.push_back(bucket.range.count);
  plan.text =
      fmt::format("{} message{}, {:.1f} ms predicted (1 message {:.1f}, per tensor {:.1f})",
                  groups.size(), groups.size() == 1 ? "" : "s", 1e3 * *plan.predicted_s,
                  1e3 * predicted_s(all_together(layers)), 1e3 * predicted_s(each_alone(layers)));
  return plan;
}

void Overlap::cut(const Groups& groups) {
  const std::vector<Stage>& stages = stages_.all();
  buckets_.clear();
  std::size_t stage = 0;
  for (const std::size_t size : groups) {
    BlockRange range;
    for (const std::size_t end = stage + size; stage < end; ++stage) {
      range.first_block = stages[stage].range.first_block;  // stages go backwards
      range.count += stages[stage].range.count;
    }
    // A single bucket is summed in the shortest time.
    buckets_.push_back({{c_, range, groups.size() > 1}, range, stages[stage - 1].last});
  }
}

}  // namespace tandem

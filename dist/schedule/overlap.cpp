#include "dist/schedule/overlap.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "base/error.h"
#include "dist/transport/collectives.h"
#include "tensor/backend.h"

namespace tandem {
namespace {

void broadcast_groups(Communication& communication, int workers, Groups& groups) {
  communication.call([&] {
    const auto own = std::as_bytes(std::span(groups));
    Bytes bytes(own.begin(), own.end());
    broadcast(communication.transport(), workers, bytes);
    groups.resize(bytes.size() / sizeof(groups[0]));
    std::ranges::copy(bytes, std::as_writable_bytes(std::span(groups)).begin());
  });
}

double bytes_of(const Stage& stage) {
  return static_cast<double>(stage.range.count) * sizeof(float);
}

void require_elements(const MergePlan& plan, std::int64_t count) {
  double bytes = 0;
  for (const TimedLayer& layer : plan.layers) bytes += layer.bytes;
  if (bytes != static_cast<double>(count) * sizeof(float))
    throw UserError("--plan: {} is for a net whose gradient has {:.0f} elements; this one has {}",
                    plan.file, bytes / sizeof(float), count);
}

void require_stages(const MergePlan& plan, const std::vector<Stage>& stages) {
  if (plan.layers.size() != stages.size())
    throw UserError("--plan: {} is for a net that backward finishes in {} layers; this one has {}",
                    plan.file, plan.layers.size(), stages.size());
  for (std::size_t i = 0; i < stages.size(); ++i)
    if (plan.layers[i].bytes != bytes_of(stages[i]) || plan.names[i] != stages[i].last->name)
      throw UserError(
          "--plan: {} is for another net: layer {} in the order of backward should have {} "
          "elements and end with {}",
          plan.file, i + 1, stages[i].range.count, stages[i].last->name);
}

std::string text_of(const MergePlan& plan) {
  const auto ms = [&](const Groups& groups) { return 1e3 * plan.predicted_s(groups); };
  return fmt::format("{} message{}, {:.1f} ms predicted (1 message {:.1f}, per tensor {:.1f}){}",
                     plan.groups.size(), plan.groups.size() == 1 ? "" : "s", ms(plan.groups),
                     ms(all_together(plan.layers)), ms(each_alone(plan.layers)),
                     plan.file.empty() ? "" : fmt::format(", as {} says", plan.file));
}

}  // namespace

Overlap::Overlap(const StrategyContext& context, Merging merging)
    : c_(context), merging_(merging), times_(context.communication) {
  const BlockRange whole{.count = c_.parameters.values().count()};
  buckets_.push_back({{c_, whole, false}, whole, nullptr});
  if (c_.plan) require_elements(*c_.plan, whole.count);
}

void Overlap::before_step(std::int64_t t) {
  t_ = t;
  ++step_;
  stages_.begin_step();
  buckets_started_ = 0;
  measures_ = !planned_ && step_ >= kFirstMeasured;
}

void Overlap::on_grad_ready(Parameter& parameter) {
  if (!stages_.ready(parameter)) return;
  if (measures_) times_.reached(parameter.ready);
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
    if (measures_ && !bucket.last) update_s_ = seconds_between(begin, Clock::now());
  }
  if (step_ == 1) {
    stages_.learn(c_.parameters);
    use_given_plan();
  }
  if (measures_) end_measured_step();
  times_.begin_step();  // of the next iteration, which begins with its data
}

void Overlap::end_measured_step() {
  const Spans::Scope span(c_.spans, SpanKind::wait);
  times_.end_step();
  if (step_ == kLastMeasured && c_.parameters.device().is_cpu()) {
    backward_s_ = times_.of_slowest(c_.workers).back();
    cut(Groups(stages_.all().size(), 1));
  }
  if (step_ == kLastMeasuredSending) measure_plan();
}

// Only the first worker needs to have the plan.
void Overlap::use_given_plan() {
  const Spans::Scope span(c_.spans, SpanKind::wait);
  MergePlan plan;
  if (c_.plan && c_.communication.transport().rank() == 0) plan = *c_.plan;
  if (!plan.groups.empty()) require_stages(plan, stages_.all());
  switch_to(std::move(plan));
}

void Overlap::measure_plan() {
  MergePlan plan{.update_s = update_s_};
  const std::vector<double> ready = times_.of_slowest(c_.workers);
  for (std::size_t i = 0; i < ready.size(); ++i) {
    const Stage& stage = stages_.all()[i];
    plan.layers.push_back({ready[i], bytes_of(stage)});
    plan.names.push_back(stage.last->name);
  }
  plan.cost = measure_sum_cost(c_);
  plan.cost.all_ready = backward_s_;
  plan.groups = merging_(plan.layers, plan.cost, c_.options);
  switch_to(std::move(plan));
}

// All workers have the same stages. The first worker decides, because only it may have a plan, and
// arithmetic may differ between machines.
void Overlap::switch_to(MergePlan plan) {
  broadcast_groups(c_.communication, c_.workers, plan.groups);
  if (plan.groups.empty()) return;
  planned_ = true;
  cut(plan.groups);
  if (plan.layers.empty()) return;  // the first worker has them
  plan_ = {.text = text_of(plan),
           .predicted_s = plan.predicted_s(plan.groups),
           .first_iteration = t_ + 1};
  for (const Bucket& bucket : buckets_) plan_.elements.push_back(bucket.range.count);
  plan_.merge = std::move(plan);
}

void Overlap::cut(const Groups& groups) {
  const std::vector<Stage>& stages = stages_.all();
  buckets_.clear();
  std::size_t stage = 0;
  for (const std::size_t size : groups) {
    require(size > 0 && size <= stages.size() - stage, "a group has {} layers", size);
    BlockRange range;
    for (const std::size_t end = stage + size; stage < end; ++stage) {
      range.first_block = stages[stage].range.first_block;  // stages go backwards
      range.count += stages[stage].range.count;
    }
    // A single bucket is summed in the shortest time.
    buckets_.push_back({{c_, range, groups.size() > 1}, range, stages[stage - 1].last});
  }
  require(stage == stages.size(), "the groups have {} layers of {}", stage, stages.size());
}

void Overlap::visit(State& state) {
  loaded_ = plan_.merge.value_or(MergePlan());
  loaded_.visit(state);
  if (!planned_ && !loaded_.groups.empty()) c_.plan = &loaded_;
}

}  // namespace tandem

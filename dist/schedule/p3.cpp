#include "dist/schedule/p3.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "dist/schedule/ring_sums.h"
#include "tensor/backend.h"

namespace tandem {

Via via(const StrategyOptions& given) { return static_cast<Via>(option_value(given, "--via")); }

Adders adders_of(const StrategyContext& context, bool on_request) {
  if (via(context.options) == Via::servers)
    return {context.workers, static_cast<int>(context.option("--servers")), on_request};
  return {0, context.workers, on_request};
}

P3::P3(const StrategyContext& context, const Propagation& propagation)
    : c_(context),
      propagation_(propagation),
      whole_(std::make_unique<GradientSum>(context)),
      use_times_(context.communication),
      ready_times_(context.communication) {}

void P3::before_step(std::int64_t t) {
  t_ = t;
  ++step_;
  uses_ = 0;
  measures_ = c_.parameters.device().is_cpu()
                  ? step_ > kLastMeasured && step_ <= kLastMeasuredSending
                  : step_ >= kFirstMeasured && step_ <= kLastMeasured;
  stages_.begin_step();
  apply_loaded();
}

void P3::before_use(Parameter& parameter) {
  if (!parameter.trained()) return;
  if (sums_)
    for (const std::size_t stage : stages_of_parameter_[static_cast<std::size_t>(parameter.index)])
      apply(stage);
  note_use(parameter);
}

// Only the first use in an iteration counts.
void P3::note_use(const Parameter& parameter) {
  if (step_ == 1 && std::ranges::find(used_, &parameter) == used_.end())
    used_.push_back(&parameter);
  if (!measures_ || uses_ == used_.size() || used_[uses_] != &parameter) return;
  ++uses_;
  use_times_.reached(c_.parameters.device().backend().record_event());
}

void P3::on_grad_ready(Parameter& parameter) {
  const auto stage = stages_.ready(parameter);
  if (stage && measures_) ready_times_.reached(parameter.ready);
  if (!stage || !sums_) return;
  require(updates_[*stage].is == Update::Is::applied,
          "{} has a gradient, but forward has not used it", parameter.name);
  updates_[*stage] = {Update::Is::in_flight, t_};
  if (*stage == 0) ++communicating_;
  sums_->begin(*stage, t_, parameter.ready);
}

void P3::after_backward(std::int64_t t) {
  if (sums_) {
    require(stages_.all_ready(), "backward has not finished all {} stages", stages_.all().size());
    end_measured_step();
    return;
  }
  Gradient gradient{t, c_.parameters.gradients(), c_.parameters.device().backend().record_event()};
  whole_->wait_for(gradient);
  {
    const Spans::Scope span(c_.spans, SpanKind::update);
    const auto begin = Clock::now();
    c_.optimizer.update(t);
    update_s_ = seconds_between(begin, Clock::now());
  }
  if (step_ == 1) stages_.learn(c_.parameters);
  end_measured_step();
}

void P3::end_measured_step() {
  if (measures_) {
    use_times_.end_step();
    ready_times_.end_step();
  }
  if (step_ == kLastMeasured) switch_to_slices();
  if (step_ == kLastMeasuredSending && measures_) {
    settle();  // the communication thread must be free, and tell if it has failed
    predict();
  }
  begin_times();  // of the next iteration, which begins with its data
}

void P3::begin_times() {
  use_times_.begin_step();
  ready_times_.begin_step();
}

void P3::leave_out(Clock::duration duration) {
  use_times_.leave_out(duration);
  ready_times_.leave_out(duration);
}

void P3::switch_to_slices() {
  const Spans::Scope span(c_.spans, SpanKind::wait);
  const std::vector<Stage>& stages = stages_.all();
  stages_of_parameter_.resize(c_.parameters.all().size());
  for (const Parameter* parameter : c_.parameters.trained())
    for (std::size_t stage = 0; stage < stages.size(); ++stage)
      if (overlap(stages[stage].range, *parameter))
        stages_of_parameter_[static_cast<std::size_t>(parameter->index)].push_back(stage);
  updates_.resize(stages.size());

  const Adders adders = adders_of(c_, propagation_.on_request);
  const auto slices = propagation_.cut(c_, stages, used_, adders.count);
  plan_.first_iteration = t_ + 1;
  for (const Slice& slice : slices) plan_.elements.push_back(slice.range.count);
  const SumCost cost = measure_sum_cost(c_);
  journeys_ = journeys_of(slices, cost, via(c_.options), c_.workers, adders.count);
  if (!c_.parameters.device().is_cpu()) predict();
  whole_.reset();
  if (via(c_.options) == Via::ring) {
    sums_ = std::make_unique<RingSums>(c_, slices);
    return;
  }
  const std::size_t window = window_of(c_, slices, cost);
  sums_ = std::make_unique<DirectSum>(c_, slices, adders, window);
  Transport& transport = c_.communication.transport();
  if (via(c_.options) == Via::servers && transport.rank() == 0)
    c_.communication.call([&] { SumServer::tell(transport, adders, slices, window); });
}

// All workers must make this call.
void P3::predict() {
  const Spans::Scope span(c_.spans, SpanKind::wait);
  ComputeTimes compute{.ready = ready_times_.of_slowest(c_.workers)};
  const std::vector<double> begins = use_times_.of_slowest(c_.workers);
  for (std::size_t i = 0; i < begins.size(); ++i)
    for (const std::size_t stage : stages_of_parameter_[static_cast<std::size_t>(used_[i]->index)])
      compute.uses.push_back({begins[i], stage});
  const auto all = static_cast<double>(c_.parameters.values().count());
  for (const Stage& stage : stages_.all())
    compute.update_of.push_back(update_s_ * static_cast<double>(stage.range.count) / all);
  plan_.predicted_s = iteration_with_priorities(compute, journeys_);
  plan_.text = fmt::format("{} slices of {} tensors, {:.1f} ms predicted", plan_.elements.size(),
                           used_.size(), 1e3 * *plan_.predicted_s);
}

// Waits until the next stage is summed, or the last message of an iteration is sent.
void P3::take() {
  SliceSums::Summed summed = sums_->take();
  if (summed.stage == SliceSums::Summed::kNone) {
    --communicating_;
    return;
  }
  updates_[summed.stage].is = Update::Is::summed;
  updates_[summed.stage].ready = std::move(summed.ready);
}

void P3::apply(std::size_t stage) {
  Update& update = updates_[stage];
  if (update.is == Update::Is::applied) return;
  const auto begin = Clock::now();
  {
    const Spans::Scope span(c_.spans, SpanKind::wait);
    while (update.is == Update::Is::in_flight) take();
    for (const EventPtr& ready : update.ready) c_.parameters.device().backend().wait_for(ready);
  }
  const Spans::Scope span(c_.spans, SpanKind::update);
  const BlockRange& range = stages_.all()[stage].range;
  c_.optimizer.update_part(update.iteration, range.first(), range.count);
  update = {};
  leave_out(Clock::now() - begin);
}

void P3::settle() {
  const Spans::Scope span(c_.spans, SpanKind::wait);
  while (communicating_ > 0) take();
}

void P3::apply_loaded() {
  if (not_applied_ > 0) c_.optimizer.update(std::exchange(not_applied_, 0));
}

void P3::apply_all() {
  apply_loaded();
  for (std::size_t stage = 0; stage < updates_.size(); ++stage) apply(stage);
  settle();
}

// Between two iterations either all stages are in flight or none is.
void P3::visit(State& state) {
  settle();
  for (const Update& update : updates_) {
    if (update.iteration > 0) not_applied_ = update.iteration;
    for (const EventPtr& ready : update.ready) c_.parameters.device().backend().wait_for(ready);
  }
  state("iteration of the sum", not_applied_);
  Tensor sum = c_.parameters.gradients();
  state("sum", sum);
  std::ranges::fill(updates_, Update{});
}

}  // namespace tandem

#include "dist/param_server/push_worker.h"

#include <optional>
#include <utility>

#include "dist/host_staging.h"
#include "tensor/backend.h"

namespace tandem {

PushWorker::PushWorker(const StrategyContext& context, Answers answers)
    : c_(context),
      uncompressed_(make_none()),
      pulled_(stage_for_servers(context, *uncompressed_)),
      shards_(context),
      answers_(answers),
      told_(static_cast<std::size_t>(shards_.servers())) {
  if (push_time(context.options) == PushTime::during_backward)
    during_backward_ = std::make_unique<PushDuringBackward>(
        context, shards_, answers == Answers::weights ? pulled_.get() : nullptr);
  else
    pushed_ = stage_for_servers(context, context.compressor);
}

void PushWorker::before_step(std::int64_t t) {
  if (during_backward_) during_backward_->begin_step(t);
}

void PushWorker::on_grad_ready(Parameter& parameter) {
  if (during_backward_) during_backward_->on_grad_ready(parameter);
}

void PushWorker::push_gradient(std::int64_t t) {
  const bool answered = answers_ == Answers::weights;
  if (during_backward_)
    during_backward_->end_step();
  else
    push(t, c_.parameters.gradients(), answered ? &c_.parameters.values() : nullptr);
  if (answered) c_.parameters.values_changed();
}

void PushWorker::push(std::int64_t t, const Tensor& pushed, const Tensor* pulled) {
  Backend& backend = c_.parameters.device().backend();
  const EventPtr ready = backend.record_event();
  const Spans::Scope span(c_.spans, SpanKind::wait);
  std::optional<Shards::Staged> answer;
  if (pulled) answer.emplace(*pulled_, *pulled);
  backend.wait_for(c_.communication.call([&] {
    return shards_.push(t, {*pushed_, pushed}, answer ? &*answer : nullptr, ready);
  }));
}

void PushWorker::tell(const Notice& notice) {
  Transport& transport = c_.communication.transport();
  notice_ = notice;
  for (int i = 0; i < shards_.servers(); ++i)
    told_[static_cast<std::size_t>(i)] = transport.send(shards_.first_server() + i, kNoticeTag,
                                                        std::as_bytes(std::span(&notice_, 1)));
  for (Request& told : told_) transport.wait(told, Patience::while_others_work);
}

void PushWorker::settle() {
  if (std::exchange(paused_at_, done_) == done_) return;
  c_.communication.call([&] { tell({Notice::Kind::pause, done_}); });
}

void PushWorker::finish() {
  settle();
  Backend& backend = c_.parameters.device().backend();
  const EventPtr ready = backend.record_event();
  backend.wait_for(c_.communication.call([&] {
    shards_.begin_pull(*pulled_, c_.parameters.values(), ready);
    return shards_.end_pull(*pulled_, Patience::while_others_work);
  }));
  c_.parameters.values_changed();
}

void PushWorker::keep_weights(std::int64_t t) {
  if (!is_first()) return;
  const Tensor& values = c_.parameters.values();
  const Tensor kept = kept_.add(values.shape());
  const Spans::Scope span(c_.spans, SpanKind::wait);
  c_.communication.call([&] {
    const auto staging =
        make_staging(kept.device(), *uncompressed_, kept.count(), c_.communication.spans());
    shards_.begin_pull(*staging, kept, nullptr, kKeptTag);
    tell({Notice::Kind::keep, t});
    shards_.end_pull(*staging);
  });
}

void PushWorker::visit(State& state) {
  if (is_first()) kept_.visit(state, c_.parameters.values().count());
}

}  // namespace tandem

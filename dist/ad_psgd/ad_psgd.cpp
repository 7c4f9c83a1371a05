#include "dist/ad_psgd/ad_psgd.h"

#include <utility>

#include "tensor/backend.h"

namespace tandem {

AdPsgd::AdPsgd(const StrategyContext& context)
    : Gossip(context),
      random_(Random(context.seed, Purpose::gossip).split(static_cast<std::uint64_t>(rank_))) {
  if (active())
    neighbours_ = passive_neighbours(rank_, context.workers,
                                     static_cast<Topology>(context.option("--topology")));
  else
    before_ = Tensor::empty({weights().count()}, Dtype::f32, context.parameters.device());
}

void AdPsgd::before_step(std::int64_t t) {
  if (!active() && mail().is_open()) {
    mail().look();  // throws if the job has failed; nothing is passed on here
    take_model();
  }
  open_mail(t);
  if (active()) ask(t);
}

void AdPsgd::after_backward(std::int64_t t) {
  if (!active()) return add_move(t);
  average();
  const Spans::Scope span(c_.spans, SpanKind::update);
  c_.optimizer.update(t);
}

// ---- An active worker.

void AdPsgd::ask(std::int64_t t) {
  Random random = random_.split(static_cast<std::uint64_t>(t));
  Letter letter = copy_of_weights(t);
  letter.peer = neighbours_[static_cast<std::size_t>(random.below(neighbours_.size()))];
  letter.wants_answer = true;
  mail().send(std::move(letter));
}

void AdPsgd::average() {
  const Letter answer = [&] {
    const Spans::Scope span(c_.spans, SpanKind::wait);
    return mail().wait_for_answer();
  }();
  mix(0.5, 0.5, answer.values);
}

// ---- A passive worker.

void AdPsgd::opening() {
  if (active()) return;
  EventPtr ready;
  Tensor copy = to_host(weights(), ready);
  if (ready) ready->wait();
  model_.change([&](Tensor& model) { model = std::move(copy); });
}

void AdPsgd::closed(std::vector<Letter>) {
  if (!active()) take_model();
}

void AdPsgd::take_model() {
  model_.change([&](const Tensor& model) { set_weights(model); });
}

// The communication thread averages the model, so it must not use the worker's backend.
void AdPsgd::take(Letter letter) {
  const Tensor answer = mail().new_values();
  {
    Spans& spans = c_.communication.spans();
    spans.set_iteration(letter.iteration);
    const Spans::Scope span(spans, SpanKind::sum);
    model_.change([&](const Tensor& model) {
      c_.compressor.copy(bytes_of(model), bytes_of(answer));
      c_.compressor.average(letter.values.span<float>(), model.span<float>());
    });
  }
  letter.values = answer;
  mail().answer(std::move(letter));
}

void AdPsgd::add_move(std::int64_t t) {
  const Spans::Scope span(c_.spans, SpanKind::update);
  backend().copy(weights(), before_);
  c_.optimizer.update(t);
  backend().weighted_sum(1, weights(), -1, before_, before_);
  EventPtr ready;
  const Tensor move = c_.parameters.device().is_cpu() ? before_ : to_host(before_, ready);
  if (ready) ready->wait();
  model_.change(
      [&](const Tensor& model) { mail().host().backend().weighted_sum(1, model, 1, move, model); });
}

Letter AdPsgd::copy_of_weights(std::int64_t t) {
  if (active() || !mail().is_open()) return Gossip::copy_of_weights(t);
  Letter letter{.iteration = t, .share = share(), .values = mail().new_values()};
  model_.change([&](const Tensor& model) { mail().host().backend().copy(model, letter.values); });
  return letter;
}

}  // namespace tandem

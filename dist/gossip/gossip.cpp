#include "dist/gossip/gossip.h"

#include <span>
#include <utility>

#include "dist/block.h"
#include "dist/host_staging.h"
#include "tensor/backend.h"

namespace tandem {

Gossip::Gossip(const StrategyContext& context)
    : c_(context),
      rank_(context.communication.transport().rank()),
      sum_(context),
      mail_(context, [this](Letter letter) {
        if (letter.kind == Letter::Kind::weights) return take(std::move(letter));
        kept_.change([&](KeptMeans& kept) { kept.add(letter.peer, letter.share, letter.values); });
      }) {
  kept_.change([&](KeptMeans& kept) { kept = KeptMeans(context.workers); });
  if (context.parameters.device().is_cpu()) return;
  const std::int64_t count = weights().count();
  staging_ = make_staging(context.parameters.device(), context.compressor, count, context.spans);
  whole_ = {{.first = 0, .count = count, .step = kBlock}};
  landed_ = Tensor::empty({count}, Dtype::f32, context.parameters.device());
  free_ = backend().record_event();
}

void Gossip::open_mail(std::int64_t t) {
  last_ = t;
  if (mail_.is_open()) return;
  opening();
  mail_.open();
}

// The check comes first: a worker whose weights are not finite may call this alone, and must not
// wait for the others.
void Gossip::settle() {
  if (!mail_.is_open()) return;
  const Spans::Scope span(c_.spans, SpanKind::wait);
  Letter own = copy_of_weights(last_);
  if (own.ready) own.ready->wait();
  mail_.require_finite(own.values, last_);
  closed(mail_.close());
  // The iteration was over before. What is queued now must not seem to be a part of it.
  if (const EventPtr done = backend().record_event()) done->wait();
}

void Gossip::finish() {
  settle();
  const auto count_bytes = [&](bool counts) {
    c_.communication.call([&] { c_.communication.transport().count_bytes(counts); });
  };
  const Tensor& sum = c_.parameters.gradients();  // it is already applied
  backend().weighted_sum(share(), weights(), 0, weights(), sum);
  Gradient all{last_, sum, backend().record_event()};
  count_bytes(false);
  sum_.wait_for(all);
  count_bytes(true);
  backend().copy(sum, weights());
  c_.parameters.values_changed();
}

void Gossip::keep_weights(std::int64_t t) {
  open_mail(t);
  Letter letter = copy_of_weights(t);
  letter.kind = Letter::Kind::kept;
  letter.peer = 0;
  if (rank_ != 0) return mail_.send(std::move(letter));
  if (letter.ready) letter.ready->wait();
  kept_.change([&](KeptMeans& kept) { kept.add(0, letter.share, letter.values); });
}

std::vector<Tensor> Gossip::take_kept_weights() {
  return kept_.change([](KeptMeans& kept) { return kept.take(); });
}

void Gossip::visit(State& state) {
  settle();
  if (rank_ == 0) kept_.change([&](KeptMeans& kept) { kept.visit(state, weights().count()); });
}

Letter Gossip::copy_of_weights(std::int64_t t) {
  Letter letter{.iteration = t, .share = share()};
  letter.values = to_host(weights(), letter.ready);
  return letter;
}

Tensor Gossip::to_host(const Tensor& values, EventPtr& ready) {
  Tensor copy = mail_.new_values();
  backend().read_later(values, copy);
  ready = backend().record_event();
  return copy;
}

void Gossip::set_weights(const Tensor& values) {
  const Tensor received = on_device(values);
  const Spans::Scope span(c_.spans, SpanKind::update);
  backend().copy(received, weights());
  free_ = backend().record_event();
  c_.parameters.values_changed();
}

void Gossip::mix(double own, double other, const Tensor& values) {
  const Tensor received = on_device(values);
  const Spans::Scope span(c_.spans, SpanKind::update);
  backend().weighted_sum(own, weights(), other, received, weights());
  free_ = backend().record_event();
  c_.parameters.values_changed();
}

// Where the device can read the values, until the next call.
Tensor Gossip::on_device(const Tensor& values) {
  if (!staging_) return values;
  staging_->begin(landed_, free_, whole_, Staging::Fill::by_host);
  staging_->put(0, bytes_of(values));
  staging_->settle();
  backend().wait_for(staging_->finish());
  return landed_;
}

}  // namespace tandem

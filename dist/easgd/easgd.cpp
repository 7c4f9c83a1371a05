#include "dist/easgd/easgd.h"

#include "tensor/backend.h"

namespace tandem {

double elastic_rate(const StrategyContext& context) {
  const double given = context.number("--elastic-rate");
  return given > 0 ? given : 0.9 / context.workers;
}

void Easgd::step(std::int64_t t) {
  {
    const Spans::Scope span(c_.spans, SpanKind::update);
    c_.optimizer.update(t);
  }
  if (t % period_ == 0) meet_centre(t);
}

void Easgd::meet_centre(std::int64_t t) {
  push(t, c_.parameters.values(), &centre_);
  const Spans::Scope span(c_.spans, SpanKind::update);
  const Tensor& weights = c_.parameters.values();
  c_.parameters.device().backend().weighted_sum(1 - rate_, weights, rate_, centre_, weights);
  c_.parameters.values_changed();
}

// The worker gets the centre as it was, so both compute the same d.
void EasgdServer::take(const Push& push) {
  send_values(push.worker, push.segment);
  const Spans::Scope span(c_.communication.spans(), SpanKind::update);
  const Tensor centre = part_of(c_.parameters.values(), push.segment);
  const Tensor weights = part_of(c_.parameters.gradients(), push.segment);
  c_.compressor.decompress(push.bytes, weights.span<float>());
  c_.parameters.device().backend().weighted_sum(1 - rate_, centre, rate_, weights, centre);
}

}  // namespace tandem

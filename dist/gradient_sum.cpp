#include "dist/gradient_sum.h"

#include "dist/finite.h"
#include "dist/host_staging.h"
#include "tensor/backend.h"

namespace tandem {

GradientSum::GradientSum(const StrategyContext& context)
    : c_(context),
      ring_(context.communication->transport(), context.workers, *context.compressor,
            context.communication->spans()),
      staging_(make_staging(context.parameters.device(), *context.compressor,
                            context.parameters.values().count(), context.communication->spans())) {}

void GradientSum::operator()(Gradient& gradient) {
  c_.communication->spans().set_iteration(gradient.iteration);
  staging_->begin(gradient.values, gradient.ready, ring_.segments(gradient.values.count()));
  require_finite(c_.parameters, *staging_, gradient.ready, gradient.iteration,
                 c_.communication->spans());
  ring_.sum(*staging_);
  gradient.ready = staging_->finish();
}

void GradientSum::wait_for(Gradient& gradient) {
  const Spans::Scope span(c_.spans, SpanKind::wait);
  c_.communication->call([&] { (*this)(gradient); });
  c_.parameters.device().backend().wait_for(gradient.ready);
}

}  // namespace tandem

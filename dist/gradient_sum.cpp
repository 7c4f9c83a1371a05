#include "dist/gradient_sum.h"

#include "dist/codecs/codec.h"
#include "dist/finite.h"
#include "dist/host_staging.h"
#include "tensor/backend.h"

namespace tandem {
namespace {

std::unique_ptr<AllReduce> make_sum(const StrategyContext& context, const AllReduce::Group& group,
                                    const BlockRange& range) {
  return context.codec ? context.codec->make_sum(group, range) : make_all_reduce(group, range);
}

}  // namespace

GradientSum::GradientSum(const StrategyContext& context, int in_flight)
    : GradientSum(context, {.count = context.parameters.values().count()}, false, in_flight) {}

GradientSum::GradientSum(const StrategyContext& context, const BlockRange& range, bool linear,
                         int in_flight)
    : c_(context),
      range_(range),
      all_reduce_(make_sum(context,
                           {.transport = context.communication.transport(),
                            .ranks = context.workers,
                            .compressor = context.compressor,
                            .spans = context.communication.spans(),
                            .linear = linear},
                           range)) {
  for (int i = 0; i < in_flight; ++i) {
    auto staging = all_reduce_->make_staging();
    if (!staging)
      staging = make_staging(context.parameters.device(), context.compressor, range.count,
                             context.communication.spans());
    stagings_.push_back(std::move(staging));
  }
}

Staging& GradientSum::staging_of(const Gradient& gradient) const {
  return *stagings_[static_cast<std::size_t>(gradient.iteration) % stagings_.size()];
}

void GradientSum::begin(const Gradient& gradient) {
  staging_of(gradient).begin(gradient.values, gradient.ready, all_reduce_->segments());
}

void GradientSum::operator()(Gradient& gradient) {
  Staging& staging = staging_of(gradient);
  c_.communication.spans().set_iteration(gradient.iteration);
  require_finite(c_.parameters, staging, range_.first(), gradient.ready, gradient.iteration,
                 c_.communication.spans());
  if (c_.codec) c_.codec->begin(gradient.iteration);
  all_reduce_->sum(staging);
  gradient.ready = staging.finish();
}

void GradientSum::wait_for(Gradient& gradient) {
  const Spans::Scope span(c_.spans, SpanKind::wait);
  begin(gradient);
  c_.communication.call([&] { (*this)(gradient); });
  c_.parameters.device().backend().wait_for(gradient.ready);
}

}  // namespace tandem

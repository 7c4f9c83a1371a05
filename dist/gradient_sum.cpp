#include "dist/gradient_sum.h"

#include "dist/finite.h"

namespace tandem {

void GradientSum::operator()(const Gradient& gradient) {
  c_.communication->spans().set_iteration(gradient.iteration);
  const auto values = gradient.values.span<float>();
  require_finite(c_.parameters, values, gradient.iteration);
  ring_.sum(values);
}

void GradientSum::wait_for(const Gradient& gradient) {
  const Spans::Scope span(c_.spans, SpanKind::wait);
  c_.communication->call([&] { (*this)(gradient); });
}

}  // namespace tandem

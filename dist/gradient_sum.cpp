#include "dist/gradient_sum.h"

#include "dist/finite.h"

namespace tandem {

void GradientSum::operator()(const Gradient& gradient) {
  c_.communication->spans().set_iteration(gradient.iteration);
  const auto values = gradient.values.span<float>();
  require_finite(c_.parameters, values, gradient.iteration);
  ring_.sum(values);
}

}  // namespace tandem

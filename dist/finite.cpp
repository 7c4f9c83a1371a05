#include "dist/finite.h"

#include <optional>

#include "base/error.h"
#include "dist/compress/magnitude.h"

namespace tandem {

void require_finite(const ParameterSet& parameters, Staging& gradient, const EventPtr& ready,
                    std::int64_t iteration, Spans& spans) {
  std::optional<Spans::Scope> waits;
  if (ready) waits.emplace(spans, SpanKind::wait);
  if (!gradient.finite()) require_finite(parameters, gradient.values(), iteration);
}

void require_finite(const ParameterSet& parameters, const std::vector<float>& gradient,
                    std::int64_t iteration) {
  for (const Parameter* p : parameters.trained())
    if (!all_finite(std::span(gradient).subspan(static_cast<std::size_t>(p->offset),
                                                static_cast<std::size_t>(p->shape.count()))))
      throw Diverged(
          "training diverged: the gradient of {} is not finite in iteration {}; try a lower --lr",
          p->name, iteration);
}

}  // namespace tandem

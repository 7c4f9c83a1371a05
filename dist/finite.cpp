#include "dist/finite.h"

#include <optional>

#include "dist/compress/magnitude.h"
#include "tensor/error.h"

namespace tandem {

void require_finite(const ParameterSet& parameters, Staging& gradient, const EventPtr& ready,
                    std::int64_t iteration, Spans& spans) {
  std::optional<Spans::Scope> waits;
  if (ready) waits.emplace(spans, SpanKind::wait);
  if (gradient.finite()) return;
  const std::vector<float> values = gradient.values();
  for (const Parameter* p : parameters.trained())
    if (!all_finite(std::span(values).subspan(static_cast<std::size_t>(p->offset),
                                              static_cast<std::size_t>(p->shape.count()))))
      throw SystemError(
          "training diverged: the gradient of {} is not finite in iteration {}; try a lower --lr",
          p->name, iteration);
}

}  // namespace tandem

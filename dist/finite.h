#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "autograd/parameter.h"
#include "base/error.h"
#include "dist/compress/magnitude.h"
#include "dist/timing/spans.h"
#include "tensor/staging.h"

namespace tandem {

// Throws Diverged, naming iteration and parameter, if a gradient contains NaN or infinity.
// `gradient` is laid out like the flat gradient of the parameters.
inline void require_finite(const ParameterSet& parameters, const std::vector<float>& gradient,
                           std::int64_t iteration) {
  for (const Parameter* p : parameters.trained())
    if (!all_finite(std::span(gradient).subspan(static_cast<std::size_t>(p->offset),
                                                static_cast<std::size_t>(p->shape.count()))))
      throw Diverged(
          "training diverged: the gradient of {} is not finite in iteration {}; try a lower --lr",
          p->name, iteration);
}

// The same for a gradient whose staging has begun. If `ready` is not null, a GPU may still be
// computing it, and this function waits for it.
inline void require_finite(const ParameterSet& parameters, Staging& gradient, const EventPtr& ready,
                           std::int64_t iteration, Spans& spans) {
  std::optional<Spans::Scope> waits;
  if (ready) waits.emplace(spans, SpanKind::wait);
  if (!gradient.finite()) require_finite(parameters, gradient.values(), iteration);
}

}  // namespace tandem

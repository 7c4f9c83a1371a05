#pragma once

#include <algorithm>
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
// `gradient` is the flat gradient of the parameters, or the part of it that begins at `first`.
inline void require_finite(const ParameterSet& parameters, std::span<const float> gradient,
                           std::int64_t iteration, std::int64_t first = 0) {
  for (const Parameter* p : parameters.trained()) {
    const std::int64_t begin = std::max<std::int64_t>(0, p->offset - first);
    const std::int64_t end = std::min(std::ssize(gradient), p->offset + p->shape.count() - first);
    if (begin < end && !all_finite(gradient.subspan(static_cast<std::size_t>(begin),
                                                    static_cast<std::size_t>(end - begin))))
      throw Diverged(
          "training diverged: the gradient of {} is not finite in iteration {}; try a lower --lr",
          p->name, iteration);
  }
}

// The same for a gradient whose staging has begun. If `ready` is not null, a GPU may still be
// computing it, and this function waits for it.
inline void require_finite(const ParameterSet& parameters, Staging& gradient, std::int64_t first,
                           const EventPtr& ready, std::int64_t iteration, Spans& spans) {
  std::optional<Spans::Scope> waits;
  if (ready) waits.emplace(spans, SpanKind::wait);
  if (!gradient.finite()) require_finite(parameters, gradient.values(), iteration, first);
}

}  // namespace tandem

#include "dist/finite.h"

#include "dist/compress/magnitude.h"
#include "tensor/error.h"

namespace tandem {

void require_finite(const ParameterSet& parameters, std::span<const float> gradient,
                    std::int64_t iteration) {
  const auto finite = [](std::span<const float> values) {
    return largest_magnitude_bits(values.size(), [&](std::size_t i) { return values[i]; }) <
           kInfinityBits;
  };
  if (finite(gradient)) return;
  for (const Parameter* p : parameters.trained())
    if (!finite(gradient.subspan(static_cast<std::size_t>(p->offset),
                                 static_cast<std::size_t>(p->shape.count()))))
      throw SystemError(
          "training diverged: the gradient of {} is not finite in iteration {}; try a lower --lr",
          p->name, iteration);
}

}  // namespace tandem

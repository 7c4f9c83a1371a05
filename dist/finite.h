#pragma once

#include <cstdint>
#include <span>

#include "autograd/parameter.h"

namespace tandem {

// Throws SystemError, naming iteration and parameter, if a gradient holds NaN or infinity.
// `gradient` is laid out like the flat gradient of the parameters.
void require_finite(const ParameterSet& parameters, std::span<const float> gradient,
                    std::int64_t iteration);

}  // namespace tandem

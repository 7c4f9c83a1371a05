#pragma once

#include <cstdint>

#include "autograd/parameter.h"
#include "tensor/staging.h"

namespace tandem {

// Throws SystemError, naming iteration and parameter, if a gradient holds NaN or infinity.
// `gradient` has begun, with values laid out like the flat gradient of the parameters.
void require_finite(const ParameterSet& parameters, Staging& gradient, std::int64_t iteration);

}  // namespace tandem

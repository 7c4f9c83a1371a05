#pragma once

#include <cstdint>

#include "autograd/parameter.h"
#include "dist/timing/spans.h"
#include "tensor/staging.h"

namespace tandem {

// Throws Diverged, naming iteration and parameter, if a gradient holds NaN or infinity.
// `gradient` has begun, with values laid out like the flat gradient of the parameters; with
// `ready`, on a GPU, which may still be at work on it: the communication thread waits until it is
// done.
void require_finite(const ParameterSet& parameters, Staging& gradient, const EventPtr& ready,
                    std::int64_t iteration, Spans& spans);
// The same for values that are on the host.
void require_finite(const ParameterSet& parameters, const std::vector<float>& gradient,
                    std::int64_t iteration);

}  // namespace tandem

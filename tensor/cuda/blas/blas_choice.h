// Which algorithm computes a product: chosen once per process and GPU, for all workers.
#pragma once

#include <optional>

#include "base/function_ref.h"
#include "tensor/cuda/blas/blas_plan.h"

namespace tandem::cuda {

// None: cuBLASLt cannot compute it, or not as fast as it can be done otherwise.
using Choice = std::optional<Algorithm>;

// What has been chosen already, or null. Choices are never changed.
const Choice* find_choice(const Problem& problem);

// Chooses, by measuring unless the problem is deterministic: then the first proposal is taken.
// Measuring writes to c and to the gradient of the bias. `otherwise` measures what the result costs
// without this plan, in microseconds.
const Choice& make_choice(const Context& context, Plan& plan, const Operands& operands,
                          FunctionRef<double()> otherwise);

}  // namespace tandem::cuda

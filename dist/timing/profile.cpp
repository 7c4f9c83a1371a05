#include "dist/timing/profile.h"

#include "base/statistics.h"

namespace tandem {

std::int64_t Profile::elements() const { return total(tensors, &Tensor::elements); }
double Profile::forward_s() const { return total(tensors, &Tensor::forward_s); }
double Profile::backward_s() const { return total(tensors, &Tensor::backward_s); }

}  // namespace tandem

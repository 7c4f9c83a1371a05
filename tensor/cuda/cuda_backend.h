// The CUDA backend's door. CUDA headers stay behind it.
#pragma once

#include <memory>

namespace tandem {

class Backend;

// Throws UserError where this build or this machine cannot use GPU `index`.
std::shared_ptr<Backend> cuda_backend(int index);

}  // namespace tandem

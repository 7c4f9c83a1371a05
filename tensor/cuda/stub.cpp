// Stands in for the CUDA backend where it is not built: asking for a GPU is an error, never a
// silent fall back to the CPU.
#include "tensor/cuda/cuda_backend.h"
#include "tensor/error.h"

namespace tandem {

std::shared_ptr<Backend> cuda_backend(int index) {
  throw UserError(
      "GPU {} was asked for, but this build of Tandem has no CUDA backend; "
      "use --device cpu",
      index);
}

}  // namespace tandem

// Replaces the CUDA backend in builds without it. Asking for a GPU is then an error; there is no
// silent fallback to the CPU.
#include "base/error.h"
#include "tensor/cuda/cuda_backend.h"

namespace tandem {
namespace {

[[noreturn]] void refuse() {
  throw UserError(
      "--device cuda: this build of Tandem has no CUDA backend (no nvcc, CUDA=0 or SAN=…); use "
      "--device cpu");
}

}  // namespace

std::shared_ptr<Backend> cuda_backend(const CudaOptions&) { refuse(); }
void expect_cuda_workers(int) {}
int cuda_device_count() { refuse(); }
std::string cuda_versions() { return {}; }

}  // namespace tandem

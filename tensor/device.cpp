#include "tensor/device.h"

#include "tensor/backend.h"
#include "tensor/cpu/cpu_backend.h"
#include "tensor/cuda/cuda_backend.h"

namespace tandem {

const char* Device::name() const { return backend_->name(); }
DeviceQueue& Device::queue() const { return *backend_; }
bool Device::is_cpu() const { return backend_->is_cpu(); }

Device cpu_device(int threads) { return Device(std::make_shared<CpuBackend>(threads)); }
Device cuda_device(const CudaOptions& options) { return Device(cuda_backend(options)); }

Device host_of(const Device& device) {
  return device.is_cpu() ? device : Device(device.backend().make_host());
}

}  // namespace tandem

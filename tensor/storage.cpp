#include "tensor/storage.h"

#include "tensor/backend.h"

namespace tandem {

Storage::Storage(const Device& device, std::size_t bytes)
    : block_(device.backend().memory().take(bytes).release()) {
  block_->handles.store(1, std::memory_order_relaxed);
  block_->home = device.shared_backend();
}

void Storage::give_back() noexcept {
  // Keeps the backend, and with it the pool, alive until the call returns.
  const std::shared_ptr<Backend> home = std::move(block_->home);
  home->memory().give_back(std::unique_ptr<MemoryBlock>(block_));
}

}  // namespace tandem

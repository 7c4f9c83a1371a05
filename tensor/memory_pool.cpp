#include "tensor/memory_pool.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "base/error.h"
#include "tensor/backend.h"

namespace tandem {

std::size_t MemoryPool::size_class(std::size_t bytes) {
  if (bytes <= kAlignment) return kAlignment;
  if (bytes > std::numeric_limits<std::size_t>::max() / 2)
    return bytes;  // cannot be allocated anyway
  const std::size_t step = std::max(kAlignment, std::bit_floor(bytes - 1) / 4);
  return (bytes + step - 1) / step * step;
}

std::unique_ptr<MemoryBlock> MemoryPool::take(std::size_t bytes) {
  const std::size_t size = size_class(bytes);
  const bool apart = apart_;
  auto& classes = apart ? apart_classes_ : classes_;
  {
    const std::lock_guard lock(mutex_);
    auto& free = classes[size].free;
    if (!free.empty()) {
      auto block = std::move(free.back());
      free.pop_back();
      return block;
    }
  }
  auto block = std::make_unique<MemoryBlock>();
  block->bytes = size;
  block->data = allocate_(size);
  if (!block->data) {
    trim();
    block->data = allocate_(size);
  }
  if (!block->data) throw OutOfMemory(bytes);
  block->apart = apart;

  const std::lock_guard lock(mutex_);
  held_bytes_ += size;
  // Reserves space for every block of the class, because returning a block must not allocate.
  SizeClass& size_class = classes[size];
  ++size_class.blocks;
  if (size_class.free.capacity() < size_class.blocks)
    size_class.free.reserve(2 * size_class.blocks);
  return block;
}

void MemoryPool::give_back(std::unique_ptr<MemoryBlock> block) noexcept {
  const std::lock_guard lock(mutex_);
  auto& classes = block->apart ? apart_classes_ : classes_;
  auto& free = classes.find(block->bytes)->second.free;
  free.push_back(std::move(block));
}

MemoryPool::~MemoryPool() {
  trim();
  std::swap(classes_, apart_classes_);
  trim();
}

void MemoryPool::trim() {
  const std::lock_guard lock(mutex_);
  for (auto& [size, size_class] : classes_) {
    for (auto& block : size_class.free) free_(block->data);
    held_bytes_ -= size * size_class.free.size();
    size_class.blocks -= size_class.free.size();
    size_class.free.clear();
  }
}

std::size_t MemoryPool::held_bytes() const {
  const std::lock_guard lock(mutex_);
  return held_bytes_;
}

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

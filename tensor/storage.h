// A reference-counted block of device memory. The last handle returns it to its device's pool. Once
// the pool is warm, neither taking nor returning a block touches the heap; this is why the count is
// in the block itself and not in a std::shared_ptr.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

#include "tensor/device.h"

namespace tandem {

// What the pool keeps: memory and its reference count. `home` is set only while the block is in
// use, so that free blocks do not keep their backend alive.
struct MemoryBlock {
  void* data = nullptr;
  std::size_t bytes = 0;
  bool apart = false;  // see MemoryPool::set_apart
  std::atomic<int> handles = 0;
  std::shared_ptr<Backend> home;
};

class Storage {
 public:
  Storage() = default;
  Storage(const Device& device, std::size_t bytes);  // contents undefined
  Storage(const Storage& other) : block_(other.block_) {
    if (block_) block_->handles.fetch_add(1, std::memory_order_relaxed);
  }
  Storage(Storage&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  Storage& operator=(Storage other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~Storage() {
    if (block_ && block_->handles.fetch_sub(1, std::memory_order_acq_rel) == 1) give_back();
  }

  std::byte* data() const { return static_cast<std::byte*>(block_->data); }
  std::size_t bytes() const { return block_->bytes; }
  Device device() const { return Device(block_->home); }
  Backend& backend() const { return *block_->home; }
  bool shared() const { return block_->handles.load(std::memory_order_acquire) > 1; }
  explicit operator bool() const { return block_ != nullptr; }

 private:
  void give_back() noexcept;

  MemoryBlock* block_ = nullptr;
};

}  // namespace tandem

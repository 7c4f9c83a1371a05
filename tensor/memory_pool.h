// Keeps freed memory for the next request of the same size class. Every training step needs the
// same sizes in the same order, so after the first iterations nothing is allocated. Thread-safe:
// the data loader and the communication thread take memory too.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "tensor/storage.h"

namespace tandem {

class MemoryPool {
 public:
  using Allocate = std::function<void*(std::size_t bytes)>;  // nullptr if out of memory
  using Free = std::function<void(void*)>;

  MemoryPool(Allocate allocate, Free free)
      : allocate_(std::move(allocate)), free_(std::move(free)) {}
  ~MemoryPool();
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  // At least `bytes`, contents undefined. Throws SystemError if the memory cannot be allocated.
  std::unique_ptr<MemoryBlock> take(std::size_t bytes);
  void give_back(std::unique_ptr<MemoryBlock> block) noexcept;

  // Returns all free memory to the system.
  void trim();

  // From now on, take() uses a separate part of the pool, or the common part again. Freed memory
  // returns to its own part, and trim() does not touch the separate one. So memory that was used in
  // a recording (tensor/device_queue.h) is used by nothing else. Called only by the thread that
  // uses the device.
  void set_apart(bool apart) { apart_ = apart; }

  std::size_t held_bytes() const;  // in use and free together

  // Sizes are rounded up to four classes per power of two, so that at most 25% is wasted, and to
  // multiples of kAlignment: a cache line, and the widest vector.
  static constexpr std::size_t kAlignment = 64;
  static std::size_t size_class(std::size_t bytes);

 private:
  struct SizeClass {
    std::vector<std::unique_ptr<MemoryBlock>> free;
    std::size_t blocks = 0;  // in use and free together
  };

  Allocate allocate_;
  Free free_;
  mutable std::mutex mutex_;
  std::size_t held_bytes_ = 0;
  std::atomic<bool> apart_ = false;
  std::map<std::size_t, SizeClass> classes_, apart_classes_;
};

}  // namespace tandem

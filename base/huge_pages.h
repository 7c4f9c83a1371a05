// Memory in pages of 2 MB, or in ordinary pages if it is smaller or the system has no larger ones.
// MPI lets processes of one machine read each other's memory page by page. With ordinary pages of
// 4 KB, finding the pages takes as long as the copy itself.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>

#include "base/phantom_memory.h"

namespace tandem {

class HugePages {
 public:
  HugePages() = default;
  explicit HugePages(std::size_t bytes) : bytes_(bytes) {
    constexpr std::size_t kHuge = 2 << 20, kOrdinary = 4 << 10;
    const std::size_t page = bytes < kHuge ? kOrdinary : kHuge;
    const std::size_t all = (bytes + page - 1) / page * page;
    memory_.reset(static_cast<std::byte*>(std::aligned_alloc(page, all)));
    if (!memory_) throw std::bad_alloc();
    if (page == kHuge) ::madvise(memory_.get(), all, MADV_HUGEPAGE);
  }

  // Without content, for a simulation.
  static HugePages phantom(std::size_t bytes) {
    HugePages pages;
    pages.memory_.reset(static_cast<std::byte*>(new_phantom(bytes)));
    pages.bytes_ = bytes;
    return pages;
  }

  std::span<std::byte> span() const { return {memory_.get(), bytes_}; }

 private:
  struct Free {
    void operator()(std::byte* memory) const {
      is_phantom(memory) ? delete_phantom(memory) : std::free(memory);
    }
  };
  std::unique_ptr<std::byte[], Free> memory_;
  std::size_t bytes_ = 0;
};

}  // namespace tandem

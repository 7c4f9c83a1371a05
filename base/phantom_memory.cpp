#include "base/phantom_memory.h"

#include <sys/mman.h>

#include <atomic>
#include <map>
#include <mutex>

#include "base/error.h"

namespace tandem {
namespace {

// The thread sanitizer leaves programs few addresses.
#if defined(__SANITIZE_THREAD__)
constexpr std::size_t kBytes = std::size_t{1} << 33;  // 8 GB
#else
constexpr std::size_t kBytes = std::size_t{1} << 44;  // 16 TB
#endif
constexpr std::size_t kAlignment = 4096;

// Is never destroyed: tensors of static duration may be freed after it.
struct Addresses {
  // PROT_NONE takes no memory, not even for page tables.
  Addresses() {
    void* const range =
        ::mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) throw OutOfMemory(kBytes);
    first = static_cast<std::byte*>(range);
  }

  std::byte* first;
  std::mutex mutex;
  std::size_t used = 0;                    // from the first on, also if they are free again
  std::map<void*, std::size_t> sizes;      // of what is not free
  std::multimap<std::size_t, void*> free;  // by size, which the next simulation needs again
};
std::atomic<Addresses*> all = nullptr;  // null before the first use

Addresses& addresses() {
  static Addresses& made = *(all = new Addresses);
  return made;
}

}  // namespace

void* new_phantom(std::size_t bytes) {
  Addresses& a = addresses();
  const std::size_t size = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  const std::lock_guard lock(a.mutex);
  void* memory = nullptr;
  if (auto reused = a.free.extract(size)) {
    memory = reused.mapped();
  } else {
    if (size > kBytes - a.used) throw OutOfMemory(bytes);
    memory = a.first + a.used;
    a.used += size;
  }
  a.sizes.emplace(memory, size);
  return memory;
}

void delete_phantom(void* memory) {
  Addresses& a = addresses();
  const std::lock_guard lock(a.mutex);
  const auto freed = a.sizes.extract(memory);
  require(!freed.empty(), "this phantom memory is not in use");
  a.free.emplace(freed.mapped(), memory);
  if (!a.sizes.empty()) return;
  a.free.clear();  // all of it: sizes that come later need not be those of before
  a.used = 0;
}

bool is_phantom(const void* address) {
  const auto* at = static_cast<const std::byte*>(address);
  const Addresses* const a = all.load(std::memory_order_acquire);
  return a && at >= a->first && at < a->first + kBytes;
}

}  // namespace tandem

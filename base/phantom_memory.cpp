#include "base/phantom_memory.h"

#include <sys/mman.h>

#include <atomic>

#include "base/error.h"

namespace tandem {
namespace {

constexpr std::size_t kBytes = std::size_t{1} << 44;  // 16 TB
constexpr std::size_t kAlignment = 4096;

struct Addresses {
  std::byte* first = nullptr;
  std::atomic<std::size_t> used = 0;
};
constinit Addresses addresses;

// PROT_NONE takes no memory, not even for page tables.
std::byte* reserve() {
  void* const first =
      ::mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (first == MAP_FAILED) throw OutOfMemory(kBytes);
  return addresses.first = static_cast<std::byte*>(first);
}

}  // namespace

void* new_phantom(std::size_t bytes) {
  static std::byte* const first = reserve();
  const std::size_t all = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  const std::size_t begin = addresses.used.fetch_add(all);
  if (begin + all > kBytes) throw OutOfMemory(bytes);
  return first + begin;
}

bool is_phantom(const void* address) {
  const auto* at = static_cast<const std::byte*>(address);
  return addresses.first && at >= addresses.first && at < addresses.first + kBytes;
}

}  // namespace tandem

#include "tensor/cpu/cpu_backend.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace tandem {
namespace {

constexpr auto kAlignment = std::align_val_t{MemoryPool::kAlignment};

}  // namespace

CpuBackend::CpuBackend(int threads)
    : CpuBackend(
          threads,
          [](std::size_t bytes) { return ::operator new(bytes, kAlignment, std::nothrow); },
          [](void* data) { ::operator delete(data, kAlignment); }) {}

CpuBackend::CpuBackend(int threads, MemoryPool::Allocate allocate, MemoryPool::Free free)
    : Backend(std::move(allocate), std::move(free)), threads_(threads) {
  use_single_threaded_blas();
}

void CpuBackend::copy_from_host(std::span<const std::byte> from, const Tensor& to) {
  if (!from.empty()) std::memcpy(to.raw(), from.data(), from.size());
}

void CpuBackend::copy_to_host(const Tensor& from, std::span<std::byte> to) {
  if (!to.empty()) std::memcpy(to.data(), from.raw(), to.size());
}

void CpuBackend::copy(const Tensor& from, const Tensor& to) {
  std::memcpy(to.raw(), from.raw(), from.bytes());
}

void CpuBackend::fill(const Tensor& x, double value) {
  if (value == 0) {
    std::memset(x.raw(), 0, x.bytes());
    return;
  }
  with_float_type(x.dtype(),
                  [&]<class T>() { std::ranges::fill(x.span<T>(), static_cast<T>(value)); });
}

void CpuBackend::cast(const Tensor& from, const Tensor& to) {
  require(from.dtype() == to.dtype(), "the CPU does not convert to {} from {}", name_of(to.dtype()),
          name_of(from.dtype()));
  copy(from, to);
}

}  // namespace tandem

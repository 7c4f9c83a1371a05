// Memory of a GPU, and host memory that a GPU can access.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>

#include "tensor/cuda/queue/check.h"

namespace tandem::cuda {

struct FreeHost {
  void operator()(void* memory) const { cudaFreeHost(memory); }
};
struct FreeDevice {
  void operator()(void* memory) const { cudaFree(memory); }
};

// On the current device.
template <class T>
using PinnedMemory = std::unique_ptr<T[], FreeHost>;
template <class T>
using DeviceMemory = std::unique_ptr<T[], FreeDevice>;

template <class T>
PinnedMemory<T> pinned(std::size_t count) {
  void* memory = nullptr;
  check(cudaHostAlloc(&memory, std::max<std::size_t>(1, count) * sizeof(T), cudaHostAllocPortable),
        "allocating pinned memory");
  return PinnedMemory<T>(static_cast<T*>(memory));
}

template <class T>
DeviceMemory<T> on_device(std::size_t count) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, std::max<std::size_t>(1, count) * sizeof(T)), "allocating memory");
  return DeviceMemory<T>(static_cast<T*>(memory));
}

// Returns when the GPU has the values.
template <class T>
DeviceMemory<T> on_device(std::span<const T> values, cudaStream_t stream) {
  DeviceMemory<T> memory = on_device<T>(values.size());
  check(cudaMemcpyAsync(memory.get(), values.data(), values.size_bytes(), cudaMemcpyHostToDevice,
                        stream),
        "copying to the GPU");
  check(cudaStreamSynchronize(stream), "copying to the GPU");
  return memory;
}

}  // namespace tandem::cuda

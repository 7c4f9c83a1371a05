// How the elements that were chosen are written, as in dist/codecs/sparse.cpp.
#pragma once

#include "tensor/cuda/kernels/encode.cuh"

namespace tandem::cuda {

inline constexpr unsigned kWhole = 0xffffU;  // in place of the number: all values follow
inline constexpr int kNumberBytes = 2, kPlaceBytes = 2, kValueBytes = 4;

__device__ inline bool better_whole(unsigned chosen, int count) {
  return chosen * (kPlaceBytes + kValueBytes) >= static_cast<unsigned>(count) * kValueBytes;
}

// For these encodings, a thread has neighbouring elements, so that places come in ascending order.
__device__ inline int own_place(int j) { return static_cast<int>(threadIdx.x) * kEach + j; }

__device__ inline std::uint32_t write_whole(const float (&x)[kEach], int n, std::byte* to) {
  if (threadIdx.x == 0) store_u16(to, kWhole);
#pragma unroll
  for (int j = 0; j < kEach; ++j)
    if (own_place(j) < n) store_f32(to + kNumberBytes + own_place(j) * kValueBytes, x[j]);
  return static_cast<std::uint32_t>(kNumberBytes + n * kValueBytes);
}

// Writes the elements of this mask: bit j is the thread's element j. `before` such elements belong
// to earlier threads.
__device__ inline std::uint32_t write_some(const float (&x)[kEach], unsigned mask, unsigned before,
                                           unsigned all, std::byte* to) {
  if (threadIdx.x == 0) store_u16(to, all);
  std::byte* const places = to + kNumberBytes;
  std::byte* const values = places + all * kPlaceBytes;
#pragma unroll
  for (int j = 0; j < kEach; ++j)
    if ((mask >> j & 1U) != 0) {
      store_u16(places + before * kPlaceBytes, static_cast<unsigned>(own_place(j)));
      store_f32(values + before * kValueBytes, x[j]);
      ++before;
    }
  return static_cast<std::uint32_t>(kNumberBytes + all * (kPlaceBytes + kValueBytes));
}

}  // namespace tandem::cuda

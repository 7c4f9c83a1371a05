// What the kernels for codecs share: a CUDA block's own block of 2,048 elements in shared memory,
// sums and scans over its threads, and the three kernels that every form of encoding fills in.
#pragma once

#include "tensor/cuda/kernels/device.cuh"
#include "tensor/cuda/kernels/encode.h"

namespace tandem::cuda {

inline constexpr int kEach = kEncodedBlock / kThreads;  // elements of a thread
inline constexpr int kWarps = kThreads / 32;
inline constexpr int kLanes = 16;  // independent sums on the host, which has their order

struct Shared {
  float x[kEncodedBlock];
  std::uint32_t random[kEncodedBlock / 2];
  std::uint8_t codes[kEncodedBlock];
  alignas(4) std::byte message[kEncodedBlock * 4 + 8];
  std::uint32_t warps[kWarps];
  float lanes[2][kLanes];
  int counts[kLanes];
  float numbers[2];
};

struct OwnBlock {
  std::int64_t first;   // element of the range
  std::int64_t number;  // in the flat gradient
  int count;
};

__device__ inline OwnBlock own_block(const EncodedBlocks& blocks) {
  const std::int64_t block = blocks.order[blockIdx.x];
  const std::int64_t first = block * kEncodedBlock;
  return {first, blocks.first_block + block,
          static_cast<int>(min(static_cast<std::int64_t>(kEncodedBlock), blocks.count - first))};
}

__device__ inline unsigned magnitude_bits(float value) {
  return __float_as_uint(value) & 0x7fffffffU;
}

// Calls f(i) for every element; neighbouring threads have neighbouring elements.
template <class F>
__device__ void for_each_element(int count, F&& f) {
#pragma unroll
  for (int j = 0; j < kEach; ++j) {
    const int i = j * kThreads + static_cast<int>(threadIdx.x);
    if (i < count) f(i);
  }
}

// The results of all threads, for all threads. All of them must call these.
__device__ inline unsigned block_max(Shared& s, unsigned value) {
  __syncthreads();
  value = __reduce_max_sync(0xffffffffU, value);
  if (threadIdx.x % 32 == 0) s.warps[threadIdx.x / 32] = value;
  __syncthreads();
#pragma unroll
  for (int warp = 0; warp < kWarps; ++warp) value = max(value, s.warps[warp]);
  return value;
}

__device__ inline unsigned block_sum(Shared& s, unsigned value) {
  __syncthreads();
  value = __reduce_add_sync(0xffffffffU, value);
  if (threadIdx.x % 32 == 0) s.warps[threadIdx.x / 32] = value;
  __syncthreads();
  unsigned sum = 0;
#pragma unroll
  for (int warp = 0; warp < kWarps; ++warp) sum += s.warps[warp];
  return sum;
}

// The sum of the warp's threads up to the calling one.
__device__ inline unsigned sum_up_to_lane(unsigned value) {
  const unsigned lane = threadIdx.x % 32;
#pragma unroll
  for (unsigned distance = 1; distance < 32; distance *= 2) {
    const unsigned other = __shfl_up_sync(0xffffffffU, value, distance);
    if (lane >= distance) value += other;
  }
  return value;
}

// The sum of the threads before the calling one; `all` becomes that of all threads.
__device__ inline unsigned sum_before(Shared& s, unsigned value, unsigned& all) {
  const unsigned lane = threadIdx.x % 32, own_warp = threadIdx.x / 32;
  const unsigned upto = sum_up_to_lane(value);
  __syncthreads();
  if (lane == 31) s.warps[own_warp] = upto;
  __syncthreads();
  unsigned before = 0;
  all = 0;
#pragma unroll
  for (unsigned warp = 0; warp < kWarps; ++warp) {
    if (warp < own_warp) before += s.warps[warp];
    all += s.warps[warp];
  }
  return before + upto - value;
}

// Loads encoded bytes to shared memory in words, because host memory is far away. `from` may be at
// any multiple of 2; up to 3 bytes around it are read, too.
__device__ inline const std::byte* fetch(Shared& s, const std::byte* from, int bytes) {
  const int skip = static_cast<int>(reinterpret_cast<std::uintptr_t>(from) & 3U);
  const auto* const words = reinterpret_cast<const unsigned*>(from - skip);
  __syncthreads();  // nobody reads the message before
  for (int i = static_cast<int>(threadIdx.x); i < (skip + bytes + 3) / 4; i += kThreads)
    reinterpret_cast<unsigned*>(s.message)[i] = words[i];
  __syncthreads();
  return s.message + skip;
}

// Numbers at multiples of 2.
__device__ inline unsigned load_u16(const std::byte* from) {
  return *reinterpret_cast<const std::uint16_t*>(from);
}
__device__ inline float load_f32(const std::byte* from) {
  return __uint_as_float(load_u16(from) | load_u16(from + 2) << 16);
}
__device__ inline void store_u16(std::byte* to, unsigned value) {
  *reinterpret_cast<std::uint16_t*>(to) = static_cast<std::uint16_t>(value);
}
__device__ inline void store_f32(std::byte* to, float value) {
  store_u16(to, __float_as_uint(value) & 0xffffU);
  store_u16(to + 2, __float_as_uint(value) >> 16);
}

// The key of a stream that is split by a number, as in base/random.h.
__device__ inline std::uint64_t split_key(std::uint64_t key, std::uint64_t id) {
  return mix64(key + mix64(id + 0x9e3779b97f4a7c15ULL));
}

// A Coder has
//   encode(s, own, values, to)    returns the bytes that it wrote
//   encode_shared(s, own, to)     the same for the values in s.x
//   read<set>(s, own, from)       adds the decoded values to s.x, or sets s.x to them
template <class Coder>
__global__ void __launch_bounds__(kThreads)
    encode_kernel(Coder coder, EncodedBlocks blocks, const float* values, Slots to) {
  __shared__ Shared s;
  const OwnBlock own = own_block(blocks);
  const std::uint32_t bytes =
      coder.encode(s, own, values + own.first, to.data + blockIdx.x * to.stride);
  if (threadIdx.x == 0) to.sizes[blockIdx.x] = bytes;
}

template <class Coder, class SumCoder>
__global__ void __launch_bounds__(kThreads)
    add_kernel(Coder coder, SumCoder of_sum, EncodedBlocks blocks, EncodedMessages from, Slots to) {
  __shared__ Shared s;
  const OwnBlock own = own_block(blocks);
  for_each_element(own.count, [&](int i) { s.x[i] = 0; });
  for (int worker = 0; worker < from.workers; ++worker)
    coder.template read<false>(
        s, own, from.data[worker] + from.offsets[worker * blocks.places + blockIdx.x]);
  __syncthreads();
  const std::uint32_t bytes = of_sum.encode_shared(s, own, to.data + blockIdx.x * to.stride);
  if (threadIdx.x == 0) to.sizes[blockIdx.x] = bytes;
}

template <class Coder>
__global__ void __launch_bounds__(kThreads)
    decode_kernel(Coder coder, EncodedBlocks blocks, EncodedMessages from, float* values) {
  __shared__ Shared s;
  const OwnBlock own = own_block(blocks);
  coder.template read<true>(s, own, from.data[0] + from.offsets[blockIdx.x]);
  __syncthreads();
  for_each_element(own.count, [&](int i) { values[own.first + i] = s.x[i]; });
}

template <class Coder>
void launch_encode(const Queue& on, const Coder& coder, const EncodedBlocks& blocks,
                   const float* values, const Slots& to) {
  if (blocks.places == 0) return;
  encode_kernel<<<static_cast<unsigned>(blocks.places), kThreads, 0, on.stream>>>(coder, blocks,
                                                                                  values, to);
  check_launch("encode");
}

template <class Coder, class SumCoder>
void launch_add(const Queue& on, const Coder& coder, const SumCoder& of_sum,
                const EncodedBlocks& blocks, const EncodedMessages& from, const Slots& to) {
  if (blocks.places == 0) return;
  add_kernel<<<static_cast<unsigned>(blocks.places), kThreads, 0, on.stream>>>(coder, of_sum,
                                                                               blocks, from, to);
  check_launch("add_encoded");
}

template <class Coder>
void launch_decode(const Queue& on, const Coder& coder, const EncodedBlocks& blocks,
                   const EncodedMessages& from, float* values) {
  if (blocks.places == 0) return;
  decode_kernel<<<static_cast<unsigned>(blocks.places), kThreads, 0, on.stream>>>(coder, blocks,
                                                                                  from, values);
  check_launch("decode");
}

}  // namespace tandem::cuda

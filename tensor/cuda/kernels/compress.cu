// The same operations as dist/compress, each rounded by itself.
#include "tensor/cuda/kernels/device.cuh"

namespace tandem::cuda {
namespace {

constexpr unsigned kInfinityBits = 0x7f800000U;

__device__ unsigned magnitude_bits(float value) { return __float_as_uint(value) & 0x7fffffffU; }

// 16-bit numbers, N of them at once.
template <int N>
struct alignas(2 * N) Halves {
  unsigned short at[N];
};

struct PackTrunc16 {
  const float* values;
  std::uint16_t* packed;
  int* not_finite;

  template <int N>
  __device__ Vector<float, N> load(std::int64_t i) const {
    return cuda::load<N>(values + i);
  }
  template <int N>
  __device__ void put(std::int64_t i, const Vector<float, N>& loaded) const {
    Halves<N> halves;
    unsigned largest = 0;
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const unsigned magnitude = magnitude_bits(loaded.at[k]);
      largest = max(largest, magnitude);
      // A NaN may have its only set bits in the low half: it is kept a NaN by setting a high one.
      halves.at[k] = static_cast<unsigned short>(__float_as_uint(loaded.at[k]) >> 16 |
                                                 (magnitude > kInfinityBits ? 0x0040U : 0U));
    }
    *reinterpret_cast<Halves<N>*>(packed + i) = halves;
    if (largest >= kInfinityBits) *not_finite = 1;
  }
};

struct UnpackTrunc16 {
  const std::uint16_t* packed;
  float* values;

  template <int N>
  __device__ Halves<N> load(std::int64_t i) const {
    return *reinterpret_cast<const Halves<N>*>(packed + i);
  }
  template <int N>
  __device__ void put(std::int64_t i, const Halves<N>& loaded) const {
    float unpacked[N];
#pragma unroll
    for (int k = 0; k < N; ++k)
      unpacked[k] = __uint_as_float(static_cast<unsigned>(loaded.at[k]) << 16);
    store_floats(values + i, unpacked);
  }
};

struct FindNotFinite {
  const float* values;
  int* not_finite;

  template <int N>
  __device__ Vector<float, N> load(std::int64_t i) const {
    return cuda::load<N>(values + i);
  }
  template <int N>
  __device__ void put(std::int64_t, const Vector<float, N>& loaded) const {
    unsigned largest = 0;
#pragma unroll
    for (int k = 0; k < N; ++k) largest = max(largest, magnitude_bits(loaded.at[k]));
    if (largest >= kInfinityBits) *not_finite = 1;
  }
};

// ---- quant8: a CUDA block has a block of values, a thread twice four neighbours ----
constexpr int kQuads = 2;
constexpr int kLargestBlock = kThreads * 4 * kQuads;
constexpr int kScaleBytes = 4;

// The calling thread's quad number q begins here.
__device__ int quad_begin(int q) { return (q * kThreads + static_cast<int>(threadIdx.x)) * 4; }

// The largest value of all threads of the block.
__device__ unsigned block_max(unsigned value) {
  __shared__ unsigned warps[kThreads / 32];
  value = __reduce_max_sync(0xffffffffU, value);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
  __syncthreads();
#pragma unroll
  for (int warp = 0; warp < kThreads / 32; ++warp) value = max(value, warps[warp]);
  return value;
}

__global__ void __launch_bounds__(kThreads)
    pack_quant8_kernel(const float* values, std::byte* packed, std::int64_t all, int block,
                       int* not_finite) {
  constexpr float kSmallest = 1e-35F;  // below, one over the scale would overflow
  constexpr float kRound = 12582912.0F;
  values += static_cast<std::int64_t>(blockIdx.x) * block;
  packed += static_cast<std::int64_t>(blockIdx.x) * (block + kScaleBytes);
  const auto count = static_cast<int>(
      min(static_cast<std::int64_t>(block), all - static_cast<std::int64_t>(blockIdx.x) * block));

  float loaded[kQuads][4] = {};
#pragma unroll
  for (int q = 0; q < kQuads; ++q) {
    const int begin = quad_begin(q);
    if (begin + 4 <= count) {
      load_floats(values + begin, loaded[q]);
    } else {
#pragma unroll
      for (int k = 0; k < 4; ++k)
        if (begin + k < count) loaded[q][k] = values[begin + k];
    }
  }
  unsigned largest_bits = 0;
#pragma unroll
  for (int q = 0; q < kQuads; ++q)
#pragma unroll
    for (int k = 0; k < 4; ++k) largest_bits = max(largest_bits, magnitude_bits(loaded[q][k]));
  largest_bits = block_max(largest_bits);

  const float largest = __uint_as_float(largest_bits);
  const bool finite = largest_bits < kInfinityBits;
  const bool zero = largest < kSmallest;
  const float step =
      __uint_as_float((__float_as_uint(__fdiv_rn(largest, 127.0F)) + 0x7fU) & ~0x7fU);
  const float inverse = finite && !zero ? __fdiv_rn(1.0F, step) : 0;
  if (threadIdx.x == 0) {
    *reinterpret_cast<unsigned*>(packed) = !finite ? 0x7fc00000U
                                           : zero  ? 0U
                                                   : __float_as_uint(step);
    if (!finite) *not_finite = 1;
  }
  packed += kScaleBytes;
#pragma unroll
  for (int q = 0; q < kQuads; ++q) {
    unsigned bytes[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const float value = loaded[q][k];
      // Not all processors give a NaN the same bits, but the low ones of a given NaN stay.
      const unsigned bits = finite ? __float_as_uint(__fadd_rn(__fmul_rn(value, inverse), kRound))
                            : magnitude_bits(value) > kInfinityBits ? __float_as_uint(value)
                                                                    : 0;
      bytes[k] = bits & 0xffU;
    }
    const int begin = quad_begin(q);
    if (begin + 4 <= count) {
      *reinterpret_cast<unsigned*>(packed + begin) =
          bytes[0] | bytes[1] << 8 | bytes[2] << 16 | bytes[3] << 24;
    } else {
#pragma unroll
      for (int k = 0; k < 4; ++k)
        if (begin + k < count) packed[begin + k] = static_cast<std::byte>(bytes[k]);
    }
  }
}

__global__ void __launch_bounds__(kThreads)
    unpack_quant8_kernel(const std::byte* packed, float* values, std::int64_t all, int block) {
  values += static_cast<std::int64_t>(blockIdx.x) * block;
  packed += static_cast<std::int64_t>(blockIdx.x) * (block + kScaleBytes);
  const auto count = static_cast<int>(
      min(static_cast<std::int64_t>(block), all - static_cast<std::int64_t>(blockIdx.x) * block));
  const float scale = *reinterpret_cast<const float*>(packed);
  packed += kScaleBytes;
  const auto unpacked = [&](unsigned byte) {
    const float number = static_cast<float>(static_cast<signed char>(byte));
    return scale != scale ? scale : __fmul_rn(number, scale);
  };

  unsigned loaded[kQuads] = {};
#pragma unroll
  for (int q = 0; q < kQuads; ++q) {
    const int begin = quad_begin(q);
    if (begin + 4 <= count) loaded[q] = *reinterpret_cast<const unsigned*>(packed + begin);
  }
#pragma unroll
  for (int q = 0; q < kQuads; ++q) {
    const int begin = quad_begin(q);
    if (begin + 4 <= count) {
      float numbers[4];
#pragma unroll
      for (int k = 0; k < 4; ++k) numbers[k] = unpacked(loaded[q] >> (8 * k) & 0xffU);
      store_floats(values + begin, numbers);
    } else {
#pragma unroll
      for (int k = 0; k < 4; ++k)
        if (begin + k < count)
          values[begin + k] = unpacked(static_cast<unsigned>(packed[begin + k]));
    }
  }
}

// Blocks of a launch for blocks of values.
unsigned quant8_blocks(std::int64_t count, std::int64_t block) {
  if (block <= 0 || block > kLargestBlock || block % 4 != 0)
    throw std::runtime_error("quant8's blocks are a multiple of 4 and at most " +
                             std::to_string(kLargestBlock) + " elements on a GPU");
  return static_cast<unsigned>(parts(count, block));
}

}  // namespace

void pack_trunc16(const Queue& on, const float* values, std::uint16_t* packed, std::int64_t count,
                  int* not_finite) {
  each<kWidestF32>(on, "pack_trunc16", count, PackTrunc16{values, packed, not_finite});
}

void unpack_trunc16(const Queue& on, const std::uint16_t* packed, float* values,
                    std::int64_t count) {
  each<kWidestF32>(on, "unpack_trunc16", count, UnpackTrunc16{packed, values});
}

void pack_quant8(const Queue& on, const float* values, std::byte* packed, std::int64_t count,
                 std::int64_t block, int* not_finite) {
  const unsigned blocks = quant8_blocks(count, block);
  if (blocks == 0) return;
  pack_quant8_kernel<<<blocks, kThreads, 0, on.stream>>>(values, packed, count,
                                                         static_cast<int>(block), not_finite);
  check_launch("pack_quant8");
}

void unpack_quant8(const Queue& on, const std::byte* packed, float* values, std::int64_t count,
                   std::int64_t block) {
  const unsigned blocks = quant8_blocks(count, block);
  if (blocks == 0) return;
  unpack_quant8_kernel<<<blocks, kThreads, 0, on.stream>>>(packed, values, count,
                                                           static_cast<int>(block));
  check_launch("unpack_quant8");
}

void find_not_finite(const Queue& on, const float* values, std::int64_t count, int* not_finite) {
  each<kWidestF32>(on, "find_not_finite", count, FindNotFinite{values, not_finite});
}

}  // namespace tandem::cuda

// The same operations as dist/compress. Each is rounded separately, so that the bits are the same.
#include "tensor/cuda/kernels/device.cuh"

namespace tandem::cuda {
namespace {

constexpr unsigned kInfinityBits = 0x7f800000U;

__device__ unsigned magnitude_bits(float value) { return __float_as_uint(value) & 0x7fffffffU; }

// A CUDA block handles a block of values. A thread handles kQuads groups of four neighbours.
constexpr int kQuads = 2;
constexpr int kLargestBlock = kThreads * 4 * kQuads;
constexpr int kScaleBytes = 4;
using Quads = float[kQuads][4];

// Where the calling thread's quad q begins.
__device__ int quad_begin(int q) { return (q * kThreads + static_cast<int>(threadIdx.x)) * 4; }

// The values of the block at place blockIdx.x among the packed ones.
struct Block {
  std::int64_t first;
  int count;
};
__device__ Block own_block(const BlockOrder& blocks) {
  const std::int64_t first = static_cast<std::int64_t>(blocks.order[blockIdx.x]) * blocks.block;
  return {first, static_cast<int>(min(blocks.block, blocks.count - first))};
}

// Elements beyond `count` are zero.
__device__ void load_quads(const float* values, int count, Quads& loaded) {
#pragma unroll
  for (int q = 0; q < kQuads; ++q) {
    const int begin = quad_begin(q);
    if (begin + 4 <= count) {
      load_floats(values + begin, loaded[q]);
    } else {
#pragma unroll
      for (int k = 0; k < 4; ++k) loaded[q][k] = begin + k < count ? values[begin + k] : 0;
    }
  }
}

__device__ void store_quads(float* values, int count, const Quads& quads) {
#pragma unroll
  for (int q = 0; q < kQuads; ++q) {
    const int begin = quad_begin(q);
    if (begin + 4 <= count) {
      store_floats(values + begin, quads[q]);
    } else {
#pragma unroll
      for (int k = 0; k < 4; ++k)
        if (begin + k < count) values[begin + k] = quads[q][k];
    }
  }
}

__device__ unsigned largest_magnitude(const Quads& quads) {
  unsigned largest = 0;
#pragma unroll
  for (int q = 0; q < kQuads; ++q)
#pragma unroll
    for (int k = 0; k < 4; ++k) largest = max(largest, magnitude_bits(quads[q][k]));
  return largest;
}

// ---- none ----
__global__ void __launch_bounds__(kThreads)
    pack_none_kernel(const float* values, float* packed, BlockOrder blocks, int* not_finite) {
  const Block own = own_block(blocks);
  Quads loaded;
  load_quads(values + own.first, own.count, loaded);
  store_quads(packed + blockIdx.x * blocks.block, own.count, loaded);
  if (largest_magnitude(loaded) >= kInfinityBits) *not_finite = 1;
}

__global__ void __launch_bounds__(kThreads)
    unpack_none_kernel(const float* packed, float* values, BlockOrder blocks) {
  const Block own = own_block(blocks);
  Quads loaded;
  load_quads(packed + blockIdx.x * blocks.block, own.count, loaded);
  store_quads(values + own.first, own.count, loaded);
}

// ---- trunc16 ----
struct alignas(8) Halves {
  unsigned short at[4];
};

__global__ void __launch_bounds__(kThreads)
    pack_trunc16_kernel(const float* values, std::uint16_t* packed, BlockOrder blocks,
                        int* not_finite) {
  const Block own = own_block(blocks);
  Quads loaded;
  load_quads(values + own.first, own.count, loaded);
  packed += blockIdx.x * blocks.block;
#pragma unroll
  for (int q = 0; q < kQuads; ++q) {
    const int begin = quad_begin(q);
    Halves halves;
#pragma unroll
    for (int k = 0; k < 4; ++k)
      // A NaN whose only set mantissa bits are in the low half would become infinity. Setting a
      // high bit keeps it a NaN.
      halves.at[k] = static_cast<unsigned short>(
          __float_as_uint(loaded[q][k]) >> 16 |
          (magnitude_bits(loaded[q][k]) > kInfinityBits ? 0x0040U : 0U));
    if (begin + 4 <= own.count) {
      *reinterpret_cast<Halves*>(packed + begin) = halves;
    } else {
#pragma unroll
      for (int k = 0; k < 4; ++k)
        if (begin + k < own.count) packed[begin + k] = halves.at[k];
    }
  }
  if (largest_magnitude(loaded) >= kInfinityBits) *not_finite = 1;
}

__global__ void __launch_bounds__(kThreads)
    unpack_trunc16_kernel(const std::uint16_t* packed, float* values, BlockOrder blocks) {
  const Block own = own_block(blocks);
  packed += blockIdx.x * blocks.block;
  Quads unpacked;
#pragma unroll
  for (int q = 0; q < kQuads; ++q) {
    const int begin = quad_begin(q);
    Halves halves{};
    if (begin + 4 <= own.count) {
      halves = *reinterpret_cast<const Halves*>(packed + begin);
    } else {
#pragma unroll
      for (int k = 0; k < 4; ++k)
        if (begin + k < own.count) halves.at[k] = packed[begin + k];
    }
#pragma unroll
    for (int k = 0; k < 4; ++k)
      unpacked[q][k] = __uint_as_float(static_cast<unsigned>(halves.at[k]) << 16);
  }
  store_quads(values + own.first, own.count, unpacked);
}

// ---- quant8 ----
// The largest value among all threads of the CUDA block.
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
    pack_quant8_kernel(const float* values, std::byte* packed, BlockOrder blocks, int* not_finite) {
  constexpr float kSmallest = 1e-35F;  // below this, 1 / scale would overflow
  constexpr float kRound = 12582912.0F;
  const Block own = own_block(blocks);
  const int count = own.count;
  packed += blockIdx.x * (blocks.block + kScaleBytes);
  Quads loaded;
  load_quads(values + own.first, count, loaded);
  const unsigned largest_bits = block_max(largest_magnitude(loaded));

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
      // Processors differ in the bits of a computed NaN. But the low bits of a NaN operand survive,
      // as on the CPU.
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
    unpack_quant8_kernel(const std::byte* packed, float* values, BlockOrder blocks) {
  const Block own = own_block(blocks);
  const int count = own.count;
  values += own.first;
  packed += blockIdx.x * (blocks.block + kScaleBytes);
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

// The number of CUDA blocks to launch.
unsigned launch_of(const BlockOrder& blocks) {
  if (blocks.block <= 0 || blocks.block > kLargestBlock || blocks.block % 4 != 0)
    throw std::runtime_error("on a GPU, a block must have a multiple of 4 and at most " +
                             std::to_string(kLargestBlock) + " elements");
  return static_cast<unsigned>(parts(blocks.count, blocks.block));
}

}  // namespace

void pack_none(const Queue& on, const float* values, float* packed, const BlockOrder& blocks,
               int* not_finite) {
  const unsigned launch = launch_of(blocks);
  if (launch == 0) return;
  pack_none_kernel<<<launch, kThreads, 0, on.stream>>>(values, packed, blocks, not_finite);
  check_launch("pack_none");
}

void unpack_none(const Queue& on, const float* packed, float* values, const BlockOrder& blocks) {
  const unsigned launch = launch_of(blocks);
  if (launch == 0) return;
  unpack_none_kernel<<<launch, kThreads, 0, on.stream>>>(packed, values, blocks);
  check_launch("unpack_none");
}

void pack_trunc16(const Queue& on, const float* values, std::uint16_t* packed,
                  const BlockOrder& blocks, int* not_finite) {
  const unsigned launch = launch_of(blocks);
  if (launch == 0) return;
  pack_trunc16_kernel<<<launch, kThreads, 0, on.stream>>>(values, packed, blocks, not_finite);
  check_launch("pack_trunc16");
}

void unpack_trunc16(const Queue& on, const std::uint16_t* packed, float* values,
                    const BlockOrder& blocks) {
  const unsigned launch = launch_of(blocks);
  if (launch == 0) return;
  unpack_trunc16_kernel<<<launch, kThreads, 0, on.stream>>>(packed, values, blocks);
  check_launch("unpack_trunc16");
}

void pack_quant8(const Queue& on, const float* values, std::byte* packed, const BlockOrder& blocks,
                 int* not_finite) {
  const unsigned launch = launch_of(blocks);
  if (launch == 0) return;
  pack_quant8_kernel<<<launch, kThreads, 0, on.stream>>>(values, packed, blocks, not_finite);
  check_launch("pack_quant8");
}

void unpack_quant8(const Queue& on, const std::byte* packed, float* values,
                   const BlockOrder& blocks) {
  const unsigned launch = launch_of(blocks);
  if (launch == 0) return;
  unpack_quant8_kernel<<<launch, kThreads, 0, on.stream>>>(packed, values, blocks);
  check_launch("unpack_quant8");
}

}  // namespace tandem::cuda

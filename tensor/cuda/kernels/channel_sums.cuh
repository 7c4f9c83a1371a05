// Two sums per channel over all rows, in a fixed order: per thread, then over the lanes of a block
// in shared memory, then over blocks. The last block of a slab to finish adds up the partial sums.
#pragma once

#include "tensor/cuda/kernels/norm_rows.cuh"

namespace tandem::cuda {

// Threads of a summing block. Blocks are few and large, because each adds a row of partial sums.
inline constexpr int kSumThreads = 384;
inline constexpr int kWidestSumSlab = 256;
inline constexpr int kPartialsInFlight = 12;  // loads in flight per thread of the last block

// The layout of Queue::scratch during the sums.
struct SumScratch {
  SumScratch(const Queue& on, std::int64_t channels)
      : counters(cuda::counters(on)),
        per_channel(partials<float>(on)),
        partial(per_channel + (2 * channels + 3) / 4 * 4) {}

  int* counters;       // of each slab
  float* per_channel;  // [2, channels], for the kernel that follows
  float* partial;      // [slabs, blocks, 2·V·width]
};

// Channels per slab: few, so that many slabs share the final sums; but if there are many channels,
// enough to keep that work small.
inline int sum_slab(std::int64_t channels) {
  int slab = 64;
  while (slab < kWidestSumSlab && 4 * slab * slab <= 32 * channels) slab *= 2;
  return slab;
}

template <int V>
RowLaunch plan_sums(const Queue& on, std::int64_t rows, std::int64_t channels, int unroll,
                    int blocks_per_multiprocessor) {
  if (channels > std::int64_t{kCounters} * 64)
    throw std::runtime_error("too many channels for a batch norm on the GPU");
  return plan_rows<V>(rows, channels, kSumThreads, unroll, sum_slab(channels),
                      on.multiprocessors * blocks_per_multiprocessor);
}

template <int V>
class ChannelSums {
 public:
  // All threads of a block must call it. a and b are a thread's sums of its channels, 0 if it has
  // none. Returns true in the last block of the slab, which then has the total sums.
  __device__ bool add_up(const RowWalk& walk, const float (&a)[V], const float (&b)[V],
                         const SumScratch& scratch) {
    const int outputs = 2 * V * walk.width;
    const std::int64_t slab = blockIdx.y;
    float* partial = scratch.partial + slab * gridDim.x * outputs;
    add_lanes(walk, a, b, partial + static_cast<std::int64_t>(blockIdx.x) * outputs);

    if (!is_last_block(scratch.counters + slab, static_cast<int>(gridDim.x))) return false;
    add_blocks(outputs, reinterpret_cast<const float4*>(partial));
    return true;
  }

  // After add_up() returned true: calls f(channel, a, b) once for every channel of the slab, each
  // on one thread of the block.
  template <class F>
  __device__ void each_channel(const RowWalk& walk, F&& f) const {
    const int count = walk.width * V, first = static_cast<int>(blockIdx.y) * count;
    for (int i = threadIdx.x; i < count && first + i < walk.channels; i += kSumThreads) {
      const float* sums = memory_ + kTotals + i % V * walk.width + i / V;
      f(first + i, sums[0], sums[V * walk.width]);
    }
  }

 private:
  // Sum j of group g is output j·width + g; sums V … 2V are those of b. Rows in shared memory are
  // padded, so that neighbouring outputs are in different banks.
  __device__ void add_lanes(const RowWalk& walk, const float (&a)[V], const float (&b)[V],
                            float* partial) {
    const int width = walk.width, outputs = 2 * V * width,
              stride = kSumThreads + (width < 32 ? width : 0);
#pragma unroll
    for (int j = 0; j < V; ++j) {
      memory_[j * stride + threadIdx.x] = a[j];
      memory_[(V + j) * stride + threadIdx.x] = b[j];
    }
    __syncthreads();
    if (2 * outputs > kSumThreads) {
      for (int i = threadIdx.x; i < outputs; i += kSumThreads)
        partial[i] = lane_sum(i, 0, 1, walk, stride);
      return;
    }
    // Several threads share an output.
    const int shares = kSumThreads / outputs, output = static_cast<int>(threadIdx.x) % outputs,
              share = static_cast<int>(threadIdx.x) / outputs;
    const float sum = share < shares ? lane_sum(output, share, shares, walk, stride) : 0.0f;
    __syncthreads();
    memory_[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x < outputs) {
      float total = 0;
      for (int s = 0; s < shares; ++s) total += memory_[s * outputs + threadIdx.x];
      partial[threadIdx.x] = total;
    }
  }

  __device__ float lane_sum(int output, int first, int step, const RowWalk& walk,
                            int stride) const {
    const float* from = memory_ + output / walk.width * stride + output % walk.width;
    float sum = 0;
#pragma unroll 4
    for (int lane = first; lane < walk.lanes; lane += step) sum += from[lane * walk.width];
    return sum;
  }

  __device__ void add_blocks(int outputs, const float4* partial) {
    const int quads = outputs / 4, shares = kSumThreads / quads,
              quad = static_cast<int>(threadIdx.x) % quads,
              share = static_cast<int>(threadIdx.x) / quads;
    if (share < shares) {
      float4 sum = make_float4(0, 0, 0, 0);
      const int blocks = static_cast<int>(gridDim.x);
      for (int first = share; first < blocks; first += kPartialsInFlight * shares) {
        float4 loaded[kPartialsInFlight];
#pragma unroll
        for (int k = 0; k < kPartialsInFlight; ++k) {
          // Past the end it loads the last one again: unconditional loads do not wait for each
          // other.
          const int block = min(first + k * shares, blocks - 1);
          loaded[k] = __ldcg(partial + static_cast<std::int64_t>(block) * quads + quad);
        }
#pragma unroll
        for (int k = 0; k < kPartialsInFlight; ++k)
          if (first + k * shares < blocks) {
            sum.x += loaded[k].x, sum.y += loaded[k].y;
            sum.z += loaded[k].z, sum.w += loaded[k].w;
          }
      }
      reinterpret_cast<float4*>(memory_)[share * quads + quad] = sum;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < outputs; i += kSumThreads) {
      float total = 0;
      for (int s = 0; s < shares; ++s) total += memory_[s * outputs + i];
      memory_[kTotals + i] = total;
    }
    __syncthreads();
  }

  static constexpr int kTotals = 4 * kSumThreads;  // after the shares
  static constexpr int kLanes = 2 * V * (kSumThreads + 32), kBlocks = kTotals + 2 * kWidestSumSlab;
  alignas(16) float memory_[kLanes > kBlocks ? kLanes : kBlocks];
};

}  // namespace tandem::cuda

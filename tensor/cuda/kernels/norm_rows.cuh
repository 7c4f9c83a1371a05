// How the kernels of batch normalisation walk over rows of channels.
//
// A thread has V neighbouring channels, 16 bytes of a row, and walks down the rows, so that the
// values per channel stay in registers. The channels of a block (blockIdx.y) are a slab: `width`
// groups of V. Its threads form `lanes` rows of such groups. The blocks of a slab (blockIdx.x) take
// turns with chunks of lanes·unroll rows. If the number of channels is not a multiple of 8, V is 1.
#pragma once

#include <cstring>
#include <type_traits>

#include "tensor/cuda/kernels/device.cuh"

namespace tandem::cuda {

// Loads what is not read again soon, so that it leaves the cache first.
template <int N, class T>
__device__ __forceinline__ Vector<T, N> load_last(const T* from) {
  using Word = std::conditional_t<N * sizeof(T) == 16, uint4,
                                  std::conditional_t<sizeof(T) == 4, unsigned, unsigned short>>;
  static_assert(sizeof(Word) == N * sizeof(T));
  const Word word = __ldcs(reinterpret_cast<const Word*>(from));
  Vector<T, N> vector;
  memcpy(&vector, &word, sizeof(word));
  return vector;
}

// to = values, or += values.
template <int N, class T>
__device__ __forceinline__ void put_floats(T* to, float (&values)[N], bool accumulate) {
  if (accumulate) {
    float before[N];
    to_floats(load<N>(to), before);
#pragma unroll
    for (int j = 0; j < N; ++j) values[j] += before[j];
  }
  store_floats<N>(to, values);
}

// The only definition of z, as z = x·scale + shift: backward must reproduce forward's bits.
__device__ __forceinline__ float scale_of(float weight, float inverse_deviation) {
  return __fmul_rn(weight, inverse_deviation);
}
__device__ __forceinline__ float shift_of(float mean, float scale, float bias) {
  return __fmaf_rn(-mean, scale, bias);
}
__device__ __forceinline__ float normalized(float x, float scale, float shift) {
  return __fmaf_rn(x, scale, shift);
}

template <int V>
__device__ __forceinline__ void load_scale_and_shift(const ChannelNorm& norm, int channel,
                                                     float (&scale)[V], float (&shift)[V]) {
  float mean[V], inverse[V], weight[V], bias[V];
  load_floats(norm.mean + channel, mean);
  load_floats(norm.inverse_deviation + channel, inverse);
  load_floats(norm.weight + channel, weight);
  load_floats(norm.bias + channel, bias);
#pragma unroll
  for (int j = 0; j < V; ++j) {
    scale[j] = scale_of(weight[j], inverse[j]);
    shift[j] = shift_of(mean[j], scale[j], bias[j]);
  }
}

struct RowWalk {
  std::int64_t rows, chunks;
  int channels;
  int width;  // groups of V channels in a slab; even if V is below 8, for pairs of threads
  int lanes;  // rows that a block processes at a time

  // Calls body.template operator()<kFull>(row) for this thread's first row of every chunk. Its
  // other rows follow at distances of `lanes`. Without kFull, some of them may be past the end. The
  // threads of a block walk in step.
  template <int kUnroll, bool kFromEnd, class Body>
  __device__ __forceinline__ void each_chunk(int lane, Body&& body) const {
    const int chunk_rows = lanes * kUnroll;
    for (std::int64_t i = blockIdx.x; i < chunks; i += gridDim.x) {
      const std::int64_t first = (kFromEnd ? chunks - 1 - i : i) * chunk_rows;
      if (first + chunk_rows <= rows)
        body.template operator()<true>(first + lane);
      else
        body.template operator()<false>(first + lane);
    }
  }
};

// A thread's position in its block.
template <int V>
struct Place {
  __device__ __forceinline__ explicit Place(const RowWalk& walk)
      : lane(static_cast<int>(threadIdx.x) / walk.width),
        channel((static_cast<int>(blockIdx.y * walk.width + threadIdx.x % walk.width)) * V),
        active(lane < walk.lanes && channel < walk.channels) {}

  int lane;
  int channel;  // the first of V
  bool active;
};

struct RowLaunch {
  RowWalk walk;
  dim3 grid;
};

// `slab`: the most channels of a block, a multiple of 8 and at most `threads`. `blocks`: how many
// the device runs at once.
template <int V>
RowLaunch plan_rows(std::int64_t rows, std::int64_t channels, int threads, int unroll, int slab,
                    int blocks) {
  const std::int64_t groups = channels / V;
  std::int64_t width = parts(groups, parts<std::int64_t>(groups, slab / V));
  if (V < 8) width += width % 2;
  const std::int64_t slabs = parts(groups, width), lanes = threads / width,
                     chunks = parts(rows, lanes * unroll);
  const std::int64_t across = std::clamp<std::int64_t>(blocks / slabs, 1, chunks);
  return {.walk = {.rows = rows,
                   .chunks = chunks,
                   .channels = static_cast<int>(channels),
                   .width = static_cast<int>(width),
                   .lanes = static_cast<int>(lanes)},
          .grid = dim3(static_cast<unsigned>(across), static_cast<unsigned>(slabs))};
}

// Calls f.template operator()<T, V>().
template <class F>
void with_groups(Type type, std::int64_t channels, F&& f) {
  const bool whole = channels % 8 == 0;
  if (type == Type::f32)
    whole ? f.template operator()<float, 4>() : f.template operator()<float, 1>();
  else
    whole ? f.template operator()<bf16, 8>() : f.template operator()<bf16, 1>();
}

// Calls f.template operator()<after>().
template <class F>
void with_after(NormAfter after, F&& f) {
  if (after == NormAfter::nothing)
    f.template operator()<NormAfter::nothing>();
  else if (after == NormAfter::relu)
    f.template operator()<NormAfter::relu>();
  else
    f.template operator()<NormAfter::add_relu>();
}

}  // namespace tandem::cuda

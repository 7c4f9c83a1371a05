// Each row of logits is processed by a group of threads: part of a warp, a warp or a block.
#include <cmath>

#include "tensor/cuda/kernels/device.cuh"

namespace tandem::cuda {
namespace {

// Combines the values of a group's threads. All of them get the result.
template <int kGroup, class T, class Combine>
__device__ T reduce(T value, Combine combine) {
#pragma unroll
  for (int offset = (kGroup < 32 ? kGroup : 32) / 2; offset > 0; offset /= 2)
    value = combine(value, __shfl_xor_sync(0xffffffffU, value, offset));
  if constexpr (kGroup > 32) {
    __shared__ T warps[kGroup / 32];
    __syncthreads();  // all have read the previous values
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
    __syncthreads();
    value = warps[0];
#pragma unroll
    for (int warp = 1; warp < kGroup / 32; ++warp) value = combine(value, warps[warp]);
  }
  return value;
}

struct Sum {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};
struct Largest {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};
struct Smallest {
  __device__ int operator()(int a, int b) const { return min(a, b); }
};

// The sum of a block's values. Only thread 0 has the result.
__device__ double block_sum(double value) {
  __shared__ double warps[32];
  value = reduce<32>(value, Sum{});
  __syncthreads();
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x == 0)
    for (int warp = 1; warp < static_cast<int>(blockDim.x) / 32; ++warp) value += warps[warp];
  return value;
}

// Sums `value` over all threads of all blocks. Returns true in the one thread that has the result.
__device__ bool grid_sum(double& value, int* counter, double* partial) {
  value = block_sum(value);
  if (gridDim.x == 1) return threadIdx.x == 0;
  if (threadIdx.x == 0) partial[blockIdx.x] = value;
  if (!is_last_block(counter, static_cast<int>(gridDim.x))) return false;
  value = 0;
  for (unsigned block = threadIdx.x; block < gridDim.x; block += blockDim.x)
    value += __ldcg(partial + block);
  value = block_sum(value);
  return threadIdx.x == 0;
}

// Groups without a row of their own repeat the last one, because the threads of a warp must stay in
// step.
template <int kGroup>
struct Rows {
  std::int64_t rows;
  int per_block = static_cast<int>(blockDim.x) / kGroup;
  int lane = static_cast<int>(threadIdx.x) % kGroup;
  int slot = static_cast<int>(threadIdx.x) / kGroup;

  // Calls f(row, whether the row is this group's own).
  template <class F>
  __device__ void each(F&& f) const {
    const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * per_block;
    for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * per_block; first < rows;
         first += step) {
      const std::int64_t row = first + slot;
      f(min(row, rows - 1), row < rows);
    }
  }
};

template <class T>
__device__ float number_at(const T* x) {
  float value[1];
  load_floats(x, value);
  return value[0];
}

template <class T, int kGroup>
__global__ void __launch_bounds__(1024)
    softmax_kernel(const T* logits, const std::int32_t* labels, std::int64_t rows, int classes,
                   float smoothing, float scale, float* probabilities, float* loss, int* counter,
                   double* partial) {
  const Rows<kGroup> all{rows};
  double total = 0;
  all.each([&](std::int64_t row, bool own) {
    const T* x = logits + row * classes;
    const int label = labels[row];
    const bool valid = label >= 0 && label < classes;
    const float at_label = valid ? number_at(x + label) : NAN;
    float largest = -INFINITY;
#pragma unroll 4
    for (int c = all.lane; c < classes; c += kGroup) largest = fmaxf(largest, number_at(x + c));
    largest = reduce<kGroup>(largest, Largest{});
    float sum = 0, differences = 0;
#pragma unroll 4
    for (int c = all.lane; c < classes; c += kGroup) {
      const float difference = number_at(x + c) - largest;
      differences += difference;
      sum += expf(difference);
    }
    sum = reduce<kGroup>(sum, Sum{});
    if (smoothing != 0) differences = reduce<kGroup>(differences, Sum{});
    if (!own) return;
    const float inverse = 1 / sum;
#pragma unroll 4
    for (int c = all.lane; c < classes; c += kGroup)
      probabilities[row * classes + c] = expf(number_at(x + c) - largest) * inverse;
    if (all.lane != 0) return;
    // Relative to the largest logit, so that large logits lose no precision.
    const double log_sum = logf(sum), here = log_sum - (at_label - largest);
    total += smoothing == 0
                 ? here
                 : (1 - static_cast<double>(smoothing)) * here +
                       smoothing * (log_sum - static_cast<double>(differences) / classes);
  });
  if (grid_sum(total, counter, partial)) *loss = static_cast<float>(scale * total);
}

// Of equal values the first is the largest. A NaN is the largest if it comes first; otherwise it is
// ignored, as in std::max_element.
template <class T, int kGroup>
__global__ void __launch_bounds__(1024)
    count_correct_kernel(const T* logits, const std::int32_t* labels, std::int64_t rows,
                         int classes, std::int64_t* correct, int* counter, double* partial) {
  const Rows<kGroup> all{rows};
  double total = 0;
  all.each([&](std::int64_t row, bool own) {
    const T* x = logits + row * classes;
    const int label = labels[row];
    float largest = -INFINITY;
    int place = classes;
#pragma unroll 4
    for (int c = all.lane; c < classes; c += kGroup) {
      float value = number_at(x + c);
      if (value != value) value = c == 0 ? INFINITY : -INFINITY;
      if (place == classes || value > largest) {
        largest = value;
        place = c;
      }
    }
    const float of_all = reduce<kGroup>(largest, Largest{});
    place = reduce<kGroup>(largest == of_all ? place : classes, Smallest{});
    if (own && all.lane == 0 && place == label) total += 1;
  });
  if (grid_sum(total, counter, partial)) *correct = static_cast<std::int64_t>(total);
}

template <class T, bool kAccumulate>
struct SoftmaxGradient {
  const float* probabilities;
  const std::int32_t* labels;
  std::int64_t classes;
  float scale, everywhere, at_label;
  const float* dloss;
  T* dlogits;

  template <int N>
  struct Operands {
    Vector<float, N> probabilities;
    Vector<T, N> old;
    float scale;
    std::int64_t label;  // relative to the first of the elements
  };
  template <int N>
  __device__ Operands<N> load(std::int64_t i) const {
    const std::int64_t row = i / classes;
    Operands<N> loaded;
    loaded.probabilities = cuda::load<N>(probabilities + i);
    if constexpr (kAccumulate) loaded.old = cuda::load<N>(dlogits + i);
    loaded.scale = __fmul_rn(scale, *dloss);
    const std::int32_t label = labels[row];
    loaded.label = label < 0 || label >= classes ? -1 : row * classes + label - i;
    return loaded;
  }
  template <int N>
  __device__ void put(std::int64_t i, const Operands<N>& loaded) const {
    float values[N];
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const float target = k == loaded.label ? at_label : everywhere;
      values[k] = __fmul_rn(loaded.scale, loaded.probabilities.at[k] - target);
    }
    if constexpr (kAccumulate) {
      float old[N];
      to_floats(loaded.old, old);
#pragma unroll
      for (int k = 0; k < N; ++k) values[k] = __fadd_rn(old[k], values[k]);
    }
    store_floats(dlogits + i, values);
  }
};

// Calls f.template operator()<threads of a group>(blocks, threads of a block).
template <class F>
void with_groups(const Queue& on, std::int64_t rows, std::int64_t classes, F&& f) {
  constexpr int kSmall = 8, kBlocks = 8;
  if (classes > 256) {
    f.template operator()<256>(grid_size(on, rows, 1, kBlocks), 256);
  } else if (classes > 32) {
    f.template operator()<32>(grid_size(on, rows, 8, kBlocks), 256);
  } else if (rows <= 256) {  // one block need not wait for others
    const auto threads = static_cast<int>(std::clamp<std::int64_t>(rows * kSmall, 32, 1024));
    f.template operator()<kSmall>(1, parts(threads, 32) * 32);
  } else {
    f.template operator()<kSmall>(grid_size(on, rows, 256 / kSmall, kBlocks), 256);
  }
}

}  // namespace

void softmax_cross_entropy(const Queue& on, Type type, const void* logits,
                           const std::int32_t* labels, std::int64_t rows, std::int64_t classes,
                           float smoothing, float scale, float* probabilities, float* loss) {
  with_type(type, [&]<class T>() {
    with_groups(on, rows, classes, [&]<int kGroup>(int blocks, int threads) {
      softmax_kernel<T, kGroup><<<blocks, threads, 0, on.stream>>>(
          static_cast<const T*>(logits), labels, rows, static_cast<int>(classes), smoothing, scale,
          probabilities, loss, counters(on), partials<double>(on));
      check_launch("softmax_cross_entropy");
    });
  });
}

void softmax_cross_entropy_gradient(const Queue& on, Type type, const float* probabilities,
                                    const std::int32_t* labels, std::int64_t rows,
                                    std::int64_t classes, float smoothing, float scale,
                                    const float* dloss, void* dlogits, bool accumulate) {
  const auto everywhere = static_cast<float>(smoothing / static_cast<double>(classes));
  const float at_label = everywhere + static_cast<float>(1 - static_cast<double>(smoothing));
  with_type(type, [&]<class T>() {
    const auto run = [&]<int N, bool kAccumulate>() {
      each<N>(on, "softmax_cross_entropy_gradient", rows * classes,
              SoftmaxGradient<T, kAccumulate>{probabilities, labels, classes, scale, everywhere,
                                              at_label, dloss, static_cast<T*>(dlogits)});
    };
    if (classes % kWidestF32 == 0)
      accumulate ? run.template operator()<kWidestF32, true>()
                 : run.template operator()<kWidestF32, false>();
    else
      accumulate ? run.template operator()<1, true>() : run.template operator()<1, false>();
  });
}

void count_correct(const Queue& on, Type type, const void* logits, const std::int32_t* labels,
                   std::int64_t rows, std::int64_t classes, std::int64_t* correct) {
  with_type(type, [&]<class T>() {
    with_groups(on, rows, classes, [&]<int kGroup>(int blocks, int threads) {
      count_correct_kernel<T, kGroup><<<blocks, threads, 0, on.stream>>>(
          static_cast<const T*>(logits), labels, rows, static_cast<int>(classes), correct,
          counters(on), partials<double>(on));
      check_launch("count_correct");
    });
  });
}

}  // namespace tandem::cuda

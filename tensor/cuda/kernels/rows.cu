#include "tensor/cuda/kernels/columns.cuh"
#include "tensor/cuda/kernels/device.cuh"

namespace tandem::cuda {
namespace {

template <class T>
struct AddBias {
  const float* bias;
  T* y;
  std::int64_t columns;

  template <int N>
  struct Operands {
    Vector<T, N> y;
    float bias[N];
  };
  template <int N>
  __device__ Operands<N> load(std::int64_t i) const {
    Operands<N> loaded;
    loaded.y = cuda::load<N>(y + i);
    load_floats(bias + i % columns, loaded.bias);
    return loaded;
  }
  template <int N>
  __device__ void put(std::int64_t i, const Operands<N>& loaded) const {
    float values[N];
    to_floats(loaded.y, values);
#pragma unroll
    for (int k = 0; k < N; ++k) values[k] += loaded.bias[k];
    store_floats(y + i, values);
  }
};

constexpr int kSumThreads = 512;
constexpr int kSumBlocks = 2;  // per multiprocessor

// The part that a block sums: column tile blockIdx.x, rows [blockIdx.y · rows_per_split, …).
struct SumPlan {
  std::int64_t rows, columns, rows_per_split;
  int lane_bits, tiles, splits;
  bool accumulate;
};

// The last block of a tile adds up all partial sums of `partial`, in order.
template <int kShared>
__device__ float total_of_splits(const SumPlan& plan, int width, const float* partial,
                                 float* shared) {
  static_assert(kShared >= 4 * kSumThreads);
  const int thread = static_cast<int>(threadIdx.x), quads = width / 4, groups = kSumThreads / quads;
  const int group = thread / quads, column = thread % quads * 4;
  float4 sum = {0, 0, 0, 0};
#pragma unroll 4
  for (int split = group; split < plan.splits; split += groups) {
    const float4 more = __ldcg(reinterpret_cast<const float4*>(partial + split * width + column));
    sum.x += more.x;
    sum.y += more.y;
    sum.z += more.z;
    sum.w += more.w;
  }
  *reinterpret_cast<float4*>(shared + group * width + column) = sum;
  __syncthreads();
  float total = 0;
  if (thread < width)
    for (int g = 0; g < min(groups, plan.splits); ++g) total += shared[g * width + thread];
  return total;
}

// With kMasked, x is set to 0 where y <= 0 and also written to `masked`, which may be x.
template <class T, int N, bool kMasked>
__global__ void __launch_bounds__(kSumThreads, kSumBlocks)
    column_sums_kernel(SumPlan plan, const T* x, const T* y, T* masked, float* sums, int* counters,
                       float* partial) {
  constexpr int kShared = kSumThreads * (N < 4 ? 4 : N);
  __shared__ alignas(16) float shared[kShared];
  const int thread = static_cast<int>(threadIdx.x), lanes = 1 << plan.lane_bits, width = lanes * N;
  const std::int64_t column = (static_cast<std::int64_t>(blockIdx.x) * lanes + thread % lanes) * N;
  const std::int64_t begin = blockIdx.y * plan.rows_per_split,
                     end = min(plan.rows, begin + plan.rows_per_split);
  const int step = kSumThreads >> plan.lane_bits;
  constexpr int kRows = kMasked && N == 8 ? 3 : 4;  // loads in flight, limited by registers
  float sum[N] = {};
  if (column < plan.columns) {
    std::int64_t row = begin + thread / lanes;
    std::int64_t at = row * plan.columns + column;
    const std::int64_t stride = step * plan.columns;
    for (; row < end; row += kRows * step, at += kRows * stride) {
      const int left = static_cast<int>(min(end - row, std::int64_t{kRows * kSumThreads}));
      Vector<T, N> loaded[kRows], loaded_y[kRows];
#pragma unroll
      for (int u = 0; u < kRows; ++u) {
        if (u * step >= left) break;
        loaded[u] = load<N>(x + at + u * stride);
        if constexpr (kMasked) loaded_y[u] = load<N>(y + at + u * stride);
      }
#pragma unroll
      for (int u = 0; u < kRows; ++u) {
        if (u * step >= left) break;
        float values[N];
        to_floats(loaded[u], values);
        if constexpr (kMasked) {
          float output[N];
          to_floats(loaded_y[u], output);
#pragma unroll
          for (int k = 0; k < N; ++k) values[k] = output[k] <= 0 ? 0 : values[k];
          store_floats(masked + at + u * stride, values);
        }
#pragma unroll
        for (int k = 0; k < N; ++k) sum[k] += values[k];
      }
    }
  }
  float total = column_total<kSumThreads>(sum, plan.lane_bits, shared);
  if (plan.splits > 1) {
    partial += static_cast<std::int64_t>(blockIdx.x) * plan.splits * width;
    if (thread < width) partial[blockIdx.y * width + thread] = total;
    if (!is_last_block(counters + blockIdx.x, plan.splits)) return;
    total = total_of_splits<kShared>(plan, width, partial, shared);
  }
  const std::int64_t out = static_cast<std::int64_t>(blockIdx.x) * width + thread;
  if (thread < width && out < plan.columns) sums[out] = plan.accumulate ? sums[out] + total : total;
}

template <class T, int N>
SumPlan plan_sums(const Queue& on, std::int64_t rows, std::int64_t columns, bool accumulate) {
  constexpr int kRowsWorthASplit = 8;  // per thread
  const std::int64_t vectors = columns / N;
  SumPlan plan = {};
  plan.rows = rows;
  plan.columns = columns;
  plan.accumulate = accumulate;
  // Few rows are summed in one go, in narrow tiles of whole cache lines. Many rows need wide tiles.
  const int line_lanes = std::min(32, 128 / (N * static_cast<int>(sizeof(T))));
  plan.lane_bits = lane_bits_for<N>(vectors, line_lanes);
  if (rows > kRowsWorthASplit * (kSumThreads >> plan.lane_bits))
    plan.lane_bits = lane_bits_for<N>(vectors, 32);
  const std::int64_t tiles = parts<std::int64_t>(vectors, 1 << plan.lane_bits);
  const std::int64_t by_rows = rows / (kRowsWorthASplit * (kSumThreads >> plan.lane_bits));
  const std::int64_t by_blocks = tiles > kCounters ? 1 : on.multiprocessors * kSumBlocks / tiles;
  const std::int64_t splits = std::max<std::int64_t>(1, std::min(by_rows, by_blocks));
  plan.tiles = static_cast<int>(tiles);
  plan.rows_per_split = std::max<std::int64_t>(1, parts(rows, splits));
  plan.splits = static_cast<int>(std::max<std::int64_t>(1, parts(rows, plan.rows_per_split)));
  return plan;
}

template <bool kMasked>
void column_sums(const Queue& on, Type type, const void* x, const void* y, void* masked,
                 float* sums, std::int64_t rows, std::int64_t columns, bool accumulate) {
  if (columns == 0) return;
  with_type(type, [&]<class T>() {
    with_width<T>(columns, [&]<int N>() {
      const SumPlan plan = plan_sums<T, N>(on, rows, columns, accumulate);
      const dim3 grid(static_cast<unsigned>(plan.tiles), static_cast<unsigned>(plan.splits));
      column_sums_kernel<T, N, kMasked><<<grid, kSumThreads, 0, on.stream>>>(
          plan, static_cast<const T*>(x), static_cast<const T*>(y), static_cast<T*>(masked), sums,
          counters(on), partials<float>(on));
      check_launch("column_sums");
    });
  });
}

}  // namespace

void add_bias(const Queue& on, Type type, const float* bias, void* y, std::int64_t rows,
              std::int64_t columns) {
  if (columns == 0) return;
  with_type(type, [&]<class T>() {
    with_width<T>(columns, [&]<int N>() {
      each<N>(on, "add_bias", rows * columns, AddBias<T>{bias, static_cast<T*>(y), columns});
    });
  });
}

void sum_rows(const Queue& on, Type type, const void* x, float* sums, std::int64_t rows,
              std::int64_t columns, bool accumulate) {
  column_sums<false>(on, type, x, nullptr, nullptr, sums, rows, columns, accumulate);
}

void relu_bias_gradient(const Queue& on, Type type, const void* y, const void* dy, void* masked,
                        float* sums, std::int64_t rows, std::int64_t columns, bool accumulate) {
  if (sums == nullptr) return relu_gradient(on, type, y, dy, masked, rows * columns, false);
  column_sums<true>(on, type, dy, y, masked, sums, rows, columns, accumulate);
}

}  // namespace tandem::cuda

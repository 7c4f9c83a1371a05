// With x̂ = (x - mean)·inverse, n rows, and dy' the gradient of the ReLU's input:
//
//   dbias = Σ dy'      dweight = Σ dy'·x̂      dx = scale·dy' + slope·x + offset
//
// where scale = weight·inverse, slope = -scale·inverse·dweight/n and offset = -scale·dbias/n -
// slope·mean. One kernel computes the sums, the next one dx.
#include "tensor/cuda/kernels/channel_sums.cuh"

namespace tandem::cuda {
namespace {

constexpr int kSumUnroll = 2;
constexpr int kSumBlocks = 2;  // per multiprocessor, of kSumThreads

constexpr int kApplyUnroll = 2;
constexpr int kApplyBlocks = 3;  // per multiprocessor, of kThreads
constexpr int kApplySlab = 256;  // channels of a block, at most

template <class T>
struct Sources {
  const T* x;
  const T* dy;
  const T* more;
  const std::uint8_t* mask;
};

// x and dy' of V neighbouring elements.
template <class T, int V, NormAfter kAfter, bool kMore>
struct Elements {
  Vector<T, V> x, dy, more;
  unsigned bits;

  // kLast: they are not read again soon.
  template <bool kLast>
  __device__ __forceinline__ void load_from(const Sources<T>& from, std::int64_t at) {
    const auto get = [at](const T* of) { return kLast ? load_last<V>(of + at) : load<V>(of + at); };
    x = get(from.x);
    dy = get(from.dy);
    if constexpr (kMore) more = get(from.more);
    if constexpr (kAfter == NormAfter::add_relu) bits = from.mask[at >> 3] >> (at & 7);
  }

  // scale and shift are used with NormAfter::relu only.
  __device__ __forceinline__ void take(const float (&scale)[V], const float (&shift)[V],
                                       float (&xs)[V], float (&gradients)[V]) const {
    to_floats(x, xs);
    to_floats(dy, gradients);
    if constexpr (kMore) {
      float others[V];
      to_floats(more, others);
#pragma unroll
      for (int j = 0; j < V; ++j) gradients[j] += others[j];
    }
#pragma unroll
    for (int j = 0; j < V; ++j) {
      if constexpr (kAfter == NormAfter::relu)
        gradients[j] = normalized(xs[j], scale[j], shift[j]) > 0 ? gradients[j] : 0.0f;
      if constexpr (kAfter == NormAfter::add_relu)
        gradients[j] = bits >> j & 1 ? gradients[j] : 0.0f;
    }
  }
};

// `share` is 1/n.
template <class T, int V, NormAfter kAfter, bool kMore>
__global__ void __launch_bounds__(kSumThreads, kSumBlocks)
    sums_kernel(RowWalk walk, ChannelNorm norm, Sources<T> from, ChannelNormGradients into,
                double share, SumScratch scratch) {
  const Place<V> place(walk);
  float sums[V] = {}, products[V] = {};
  if (place.active) {
    float mean[V], scale[V], shift[V];
    load_floats(norm.mean + place.channel, mean);
    if constexpr (kAfter == NormAfter::relu)
      load_scale_and_shift(norm, place.channel, scale, shift);
    const int step = walk.lanes * walk.channels;
    walk.each_chunk<kSumUnroll, false>(place.lane, [&]<bool kFull>(std::int64_t row) {
      const std::int64_t first = row * walk.channels + place.channel;
      Elements<T, V, kAfter, kMore> elements[kSumUnroll];
#pragma unroll
      for (int u = 0; u < kSumUnroll; ++u)
        if (kFull || row + u * walk.lanes < walk.rows)
          elements[u].template load_from<false>(from, first + u * step);
#pragma unroll
      for (int u = 0; u < kSumUnroll; ++u)
        if (kFull || row + u * walk.lanes < walk.rows) {
          float x[V], gradients[V];
          elements[u].take(scale, shift, x, gradients);
#pragma unroll
          for (int j = 0; j < V; ++j) {
            sums[j] += gradients[j];
            products[j] += gradients[j] * (x[j] - mean[j]);
          }
          if constexpr (kAfter == NormAfter::add_relu)
            if (into.dresidual)
              put_floats<V>(static_cast<T*>(into.dresidual) + first + u * step, gradients,
                            into.dresidual_accumulate);
        }
    });
  }

  __shared__ ChannelSums<V> total;
  if (!total.add_up(walk, sums, products, scratch)) return;
  total.each_channel(walk, [&](int c, double sum, double product) {
    const float mean = norm.mean[c], inverse = norm.inverse_deviation[c], weight = norm.weight[c];
    const double dweight_before = into.dweight && into.dweight_accumulate ? into.dweight[c] : 0;
    const double dbias_before = into.dbias && into.dbias_accumulate ? into.dbias[c] : 0;
    const double dweight = product * inverse, scale = scale_of(weight, inverse),
                 slope = -scale * inverse * dweight * share;
    if (into.dweight) into.dweight[c] = static_cast<float>(dweight_before + dweight);
    if (into.dbias) into.dbias[c] = static_cast<float>(dbias_before + sum);
    scratch.per_channel[c] = static_cast<float>(slope);
    scratch.per_channel[walk.channels + c] =
        static_cast<float>(-scale * sum * share - slope * mean);
  });
}

// Processes rows from the end: the kernel of the sums has read them last, so they are still in the
// cache.
template <class T, int V, NormAfter kAfter, bool kMore>
__global__ void __launch_bounds__(kThreads, kApplyBlocks)
    apply_kernel(RowWalk walk, ChannelNorm norm, Sources<T> from, const float* slopes,
                 const float* offsets, T* dx, bool accumulate) {
  const Place<V> place(walk);
  if (!place.active) return;
  float scale[V], shift[V], slope[V], offset[V];
  load_scale_and_shift(norm, place.channel, scale, shift);
  load_floats(slopes + place.channel, slope);
  load_floats(offsets + place.channel, offset);
  const int step = walk.lanes * walk.channels;
  walk.each_chunk<kApplyUnroll, true>(place.lane, [&]<bool kFull>(std::int64_t row) {
    const std::int64_t first = row * walk.channels + place.channel;
    Elements<T, V, kAfter, kMore> elements[kApplyUnroll];
#pragma unroll
    for (int u = 0; u < kApplyUnroll; ++u)
      if (kFull || row + u * walk.lanes < walk.rows)
        elements[u].template load_from<true>(from, first + u * step);
#pragma unroll
    for (int u = 0; u < kApplyUnroll; ++u)
      if (kFull || row + u * walk.lanes < walk.rows) {
        float x[V], gradients[V];
        elements[u].take(scale, shift, x, gradients);
#pragma unroll
        for (int j = 0; j < V; ++j)
          x[j] = __fmaf_rn(scale[j], gradients[j], __fmaf_rn(slope[j], x[j], offset[j]));
        put_floats<V>(dx + first + u * step, x, accumulate);
      }
  });
}

// Calls f.template operator()<after, whether there is `more`>().
template <class F>
void with_form(NormAfter after, bool more, F&& f) {
  with_after(after, [&]<NormAfter kAfter>() {
    more ? f.template operator()<kAfter, true>() : f.template operator()<kAfter, false>();
  });
}

template <class T, int V>
void gradient(const Queue& on, const ChannelNorm& norm, Sources<T> from,
              const ChannelNormGradients& into, std::int64_t rows, std::int64_t channels) {
  const SumScratch scratch(on, channels);
  with_form(norm.after, from.more != nullptr, [&]<NormAfter kAfter, bool kMore>() {
    const RowLaunch launch = plan_sums<V>(on, rows, channels, kSumUnroll, kSumBlocks);
    sums_kernel<T, V, kAfter, kMore><<<launch.grid, kSumThreads, 0, on.stream>>>(
        launch.walk, norm, from, into, 1 / static_cast<double>(rows), scratch);
    check_launch("channel_norm_gradient");
  });
  if (!into.dx) return;

  // If the residual's gradient has just been written, it is dy' itself.
  NormAfter after = norm.after;
  if (after == NormAfter::add_relu && into.dresidual && !into.dresidual_accumulate) {
    after = NormAfter::nothing;
    from.dy = static_cast<const T*>(into.dresidual);
    from.more = nullptr;
  }
  with_form(after, from.more != nullptr, [&]<NormAfter kAfter, bool kMore>() {
    const RowLaunch launch = plan_rows<V>(rows, channels, kThreads, kApplyUnroll, kApplySlab,
                                          on.multiprocessors * kApplyBlocks);
    apply_kernel<T, V, kAfter, kMore><<<launch.grid, kThreads, 0, on.stream>>>(
        launch.walk, norm, from, scratch.per_channel, scratch.per_channel + channels,
        static_cast<T*>(into.dx), into.dx_accumulate);
    check_launch("channel_norm_gradient");
  });
}

}  // namespace

void channel_norm_gradient(const Queue& on, Type type, const ChannelNorm& norm, const void* x,
                           const std::uint8_t* mask, const void* dy, const void* more,
                           const ChannelNormGradients& into, std::int64_t rows,
                           std::int64_t channels) {
  if (rows == 0 || channels == 0) return;
  with_groups(type, channels, [&]<class T, int V>() {
    gradient<T, V>(on, norm,
                   {.x = static_cast<const T*>(x),
                    .dy = static_cast<const T*>(dy),
                    .more = static_cast<const T*>(more),
                    .mask = mask},
                   into, rows, channels);
  });
}

}  // namespace tandem::cuda

// Copies between tensors that change the numbers' type or the length of rows.
#include "tensor/cuda/kernels/device.cuh"

namespace tandem::cuda {
namespace {

template <class From, class To>
struct Cast {
  const From* from;
  To* to;

  template <int N>
  __device__ Vector<From, N> load(std::int64_t i) const {
    return cuda::load<N>(from + i);
  }
  template <int N>
  __device__ void put(std::int64_t i, const Vector<From, N>& loaded) const {
    float values[N];
    to_floats(loaded, values);
    store_floats(to + i, values);
  }
};

// An output's old value is loaded only for accumulation.
template <class A, class B>
struct Loaded {
  A value;
  B old;
};

template <class From, class To>
struct ResizeRows {
  const From* from;
  std::int64_t from_columns;
  To* to;
  std::int64_t to_columns;
  bool accumulate;

  template <int N>
  __device__ Loaded<float, float> load(std::int64_t i) const {
    const std::int64_t row = i / to_columns, column = i - row * to_columns;
    float value[1] = {0}, old[1] = {0};
    if (column < from_columns) load_floats(from + row * from_columns + column, value);
    if (accumulate) load_floats(to + i, old);
    return {value[0], old[0]};
  }
  template <int N>
  __device__ void put(std::int64_t i, const Loaded<float, float>& loaded) const {
    const float sum[1] = {accumulate ? loaded.old + loaded.value : loaded.value};
    store_floats(to + i, sum);
  }
};

// Rows of kTo columns, each written with one access.
template <class From, class To, int kTo>
struct ResizeShortRows {
  const From* from;
  std::int64_t from_columns;
  To* to;

  struct Row {
    Vector<From, 1> at[kTo];
  };
  template <int N>
  __device__ Row load(std::int64_t row) const {
    Row loaded;
#pragma unroll
    for (int c = 0; c < kTo; ++c)
      loaded.at[c] =
          c < from_columns ? cuda::load<1>(from + row * from_columns + c) : Vector<From, 1>{};
    return loaded;
  }
  template <int N>
  __device__ void put(std::int64_t row, const Row& loaded) const {
    float values[kTo];
#pragma unroll
    for (int c = 0; c < kTo; ++c) {
      float value[1];
      to_floats(loaded.at[c], value);
      values[c] = value[0];
    }
    store_floats(to + row * kTo, values);
  }
};

template <class From>
struct AddToF32 {
  const From* from;
  float* to;

  template <int N>
  __device__ Loaded<Vector<From, N>, Vector<float, N>> load(std::int64_t i) const {
    return {cuda::load<N>(from + i), cuda::load<N>(to + i)};
  }
  template <int N>
  __device__ void put(std::int64_t i,
                      const Loaded<Vector<From, N>, Vector<float, N>>& loaded) const {
    float values[N];
    to_floats(loaded.value, values);
#pragma unroll
    for (int k = 0; k < N; ++k) values[k] += loaded.old.at[k];
    store_floats(to + i, values);
  }
};

// One slow division finds the channel of a thread's first element, because Divisor is limited to
// numbers below 2³¹.
template <class T>
struct ScaleBytes {
  const std::uint8_t* x;
  const float *scale, *offset;
  unsigned channels;
  Divisor by_channels;
  T* y;

  template <int N>
  struct alignas(N) Bytes {
    std::uint8_t at[N];
  };
  template <int N>
  __device__ Bytes<N> load(std::int64_t i) const {
    Bytes<N> bytes;
    if constexpr (N == 8)
      *reinterpret_cast<uint2*>(bytes.at) = *reinterpret_cast<const uint2*>(x + i);
    else if constexpr (N == 4)
      *reinterpret_cast<unsigned*>(bytes.at) = *reinterpret_cast<const unsigned*>(x + i);
    else
      bytes.at[0] = x[i];
    return bytes;
  }
  template <int N>
  __device__ void put(std::int64_t i, const Bytes<N>& bytes) const {
    const auto first = static_cast<unsigned>(i % channels);
    float values[N];
#pragma unroll
    for (int k = 0; k < N; ++k) {
      unsigned channel = first + static_cast<unsigned>(k);
      by_channels.divide(channel);
      values[k] =
          __fadd_rn(__fmul_rn(static_cast<float>(bytes.at[k]), scale[channel]), offset[channel]);
    }
    store_floats(y + i, values);
  }
};

template <class T>
bool aligned(const T* pointer, std::size_t bytes) {
  return reinterpret_cast<std::uintptr_t>(pointer) % std::min<std::size_t>(bytes, 16) == 0;
}

}  // namespace

void cast(const Queue& on, Type from_type, const void* from, Type to_type, void* to,
          std::int64_t count) {
  with_type(from_type, [&]<class From>() {
    with_type(to_type, [&]<class To>() {
      constexpr int kWidth = std::min(kWidest<From>, kWidest<To>);
      each<kWidth>(on, "cast", count,
                   Cast<From, To>{static_cast<const From*>(from), static_cast<To*>(to)});
    });
  });
}

void resize_rows(const Queue& on, Type from_type, const void* from, std::int64_t from_columns,
                 Type to_type, void* to, std::int64_t to_columns, std::int64_t rows,
                 bool accumulate) {
  with_type(from_type, [&]<class From>() {
    with_type(to_type, [&]<class To>() {
      const auto* in = static_cast<const From*>(from);
      auto* out = static_cast<To*>(to);
      const bool at_once = !accumulate && aligned(out, to_columns * sizeof(To));
      if (at_once && to_columns == 4)
        each<1>(on, "resize_rows", rows, ResizeShortRows<From, To, 4>{in, from_columns, out});
      else if (at_once && to_columns == 8)
        each<1>(on, "resize_rows", rows, ResizeShortRows<From, To, 8>{in, from_columns, out});
      else
        each<1>(on, "resize_rows", rows * to_columns,
                ResizeRows<From, To>{in, from_columns, out, to_columns, accumulate});
    });
  });
}

void add_to_f32(const Queue& on, Type from_type, const void* from, float* to, std::int64_t count,
                bool accumulate) {
  if (!accumulate) return cast(on, from_type, from, Type::f32, to, count);
  with_type(from_type, [&]<class From>() {
    each<kWidestF32>(on, "add_to_f32", count, AddToF32<From>{static_cast<const From*>(from), to});
  });
}

void scale_bytes(const Queue& on, const std::uint8_t* x, const float* scale, const float* offset,
                 std::int64_t channels, Type type, void* y, std::int64_t count) {
  with_type(type, [&]<class T>() {
    each<kWidest<T>>(on, "scale_bytes", count,
                     ScaleBytes<T>{x, scale, offset, static_cast<unsigned>(channels),
                                   Divisor(channels), static_cast<T*>(y)});
  });
}

}  // namespace tandem::cuda

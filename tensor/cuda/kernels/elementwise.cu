#include "tensor/cuda/kernels/device.cuh"

namespace tandem::cuda {
namespace {

template <class T>
struct Fill {
  T* x;
  float value;

  struct Nothing {};
  template <int N>
  __device__ Nothing load(std::int64_t) const {
    return {};
  }
  template <int N>
  __device__ void put(std::int64_t i, Nothing) const {
    float values[N];
#pragma unroll
    for (int k = 0; k < N; ++k) values[k] = value;
    store_floats(x + i, values);
  }
};

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

// An output's old value is loaded only where it is added to.
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

// Rows of kTo columns, each written at once.
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

template <class T>
struct Add {
  const T *a, *b;
  T* y;

  template <int N>
  struct Pair {
    Vector<T, N> a, b;
  };
  template <int N>
  __device__ Pair<N> load(std::int64_t i) const {
    return {cuda::load<N>(a + i), cuda::load<N>(b + i)};
  }
  template <int N>
  __device__ void put(std::int64_t i, const Pair<N>& loaded) const {
    float left[N], right[N];
    to_floats(loaded.a, left);
    to_floats(loaded.b, right);
#pragma unroll
    for (int k = 0; k < N; ++k) left[k] += right[k];
    store_floats(y + i, left);
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

template <class T>
struct Relu {
  const T* x;
  T* y;

  template <int N>
  __device__ Vector<T, N> load(std::int64_t i) const {
    return cuda::load<N>(x + i);
  }
  template <int N>
  __device__ void put(std::int64_t i, const Vector<T, N>& loaded) const {
    float values[N];
    to_floats(loaded, values);
#pragma unroll
    for (int k = 0; k < N; ++k) values[k] = values[k] <= 0 ? 0 : values[k];
    store_floats(y + i, values);
  }
};

template <class T, bool kAccumulate>
struct ReluGradient {
  const T *y, *dy;
  T* dx;

  template <int N>
  struct Operands {
    Vector<T, N> y, dy, old;
  };
  template <int N>
  __device__ Operands<N> load(std::int64_t i) const {
    Operands<N> loaded;
    loaded.y = cuda::load<N>(y + i);
    loaded.dy = cuda::load<N>(dy + i);
    if constexpr (kAccumulate) loaded.old = cuda::load<N>(dx + i);
    return loaded;
  }
  template <int N>
  __device__ void put(std::int64_t i, const Operands<N>& loaded) const {
    float at[N], gradient[N];
    to_floats(loaded.y, at);
    to_floats(loaded.dy, gradient);
#pragma unroll
    for (int k = 0; k < N; ++k) gradient[k] = at[k] <= 0 ? 0 : gradient[k];
    if constexpr (kAccumulate) {
      float old[N];
      to_floats(loaded.old, old);
#pragma unroll
      for (int k = 0; k < N; ++k) gradient[k] += old[k];
    }
    store_floats(dx + i, gradient);
  }
};

// One slow division tells the channel of a thread's first element; the divisor's numbers end at
// 2³¹.
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

// As Random::split(stream) of the Random with this key. A random number's two halves decide about
// two neighbours, the high half about the first.
template <class T, bool kAccumulate>
struct DropoutOf {
  const std::uint64_t* step_key;
  std::uint64_t mixed_stream, threshold;
  float scale;
  const T* x;
  T* y;

  template <int N>
  struct Operands {
    Vector<T, N> x, old;
    std::uint64_t key;
  };
  template <int N>
  __device__ Operands<N> load(std::int64_t i) const {
    Operands<N> loaded;
    loaded.x = cuda::load<N>(x + i);
    if constexpr (kAccumulate) loaded.old = cuda::load<N>(y + i);
    loaded.key = mix64(*step_key + mixed_stream);
    return loaded;
  }
  template <int N>
  __device__ void put(std::int64_t i, const Operands<N>& loaded) const {
    float values[N];
    to_floats(loaded.x, values);
#pragma unroll
    for (int k = 0; k < N; k += 2) {
      const auto pair = static_cast<std::uint64_t>(i + k) / 2;
      const std::uint64_t bits = mix64(loaded.key + pair * 0x9e3779b97f4a7c15ULL);
      const bool first = (bits >> 32) < threshold, second = (bits & 0xffffffff) < threshold;
      if constexpr (N == 1) {
        values[0] = __fmul_rn(values[0], (i % 2 == 0 ? first : second) ? scale : 0);
      } else {
        values[k] = __fmul_rn(values[k], first ? scale : 0);
        values[k + 1] = __fmul_rn(values[k + 1], second ? scale : 0);
      }
    }
    if constexpr (kAccumulate) {
      float old[N];
      to_floats(loaded.old, old);
#pragma unroll
      for (int k = 0; k < N; ++k) values[k] = __fadd_rn(old[k], values[k]);
    }
    store_floats(y + i, values);
  }
};

__global__ void set_u64_kernel(std::uint64_t* to, std::uint64_t value) { *to = value; }

template <class T>
bool aligned(const T* pointer, std::size_t bytes) {
  return reinterpret_cast<std::uintptr_t>(pointer) % std::min<std::size_t>(bytes, 16) == 0;
}

}  // namespace

void fill(const Queue& on, Type type, void* x, std::int64_t count, float value) {
  with_type(type, [&]<class T>() {
    each<kWidest<T>>(on, "fill", count, Fill<T>{static_cast<T*>(x), value});
  });
}

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

void add(const Queue& on, Type type, const void* a, const void* b, void* y, std::int64_t count) {
  with_type(type, [&]<class T>() {
    each<kWidest<T>>(
        on, "add", count,
        Add<T>{static_cast<const T*>(a), static_cast<const T*>(b), static_cast<T*>(y)});
  });
}

void add_to_f32(const Queue& on, Type from_type, const void* from, float* to, std::int64_t count,
                bool accumulate) {
  if (!accumulate) return cast(on, from_type, from, Type::f32, to, count);
  with_type(from_type, [&]<class From>() {
    each<kWidestF32>(on, "add_to_f32", count, AddToF32<From>{static_cast<const From*>(from), to});
  });
}

void relu(const Queue& on, Type type, const void* x, void* y, std::int64_t count) {
  with_type(type, [&]<class T>() {
    each<kWidest<T>>(on, "relu", count, Relu<T>{static_cast<const T*>(x), static_cast<T*>(y)});
  });
}

void relu_gradient(const Queue& on, Type type, const void* y, const void* dy, void* dx,
                   std::int64_t count, bool accumulate) {
  with_type(type, [&]<class T>() {
    const auto* at = static_cast<const T*>(y);
    const auto* gradient = static_cast<const T*>(dy);
    auto* out = static_cast<T*>(dx);
    if (accumulate)
      each<kWidest<T>>(on, "relu_gradient", count, ReluGradient<T, true>{at, gradient, out});
    else
      each<kWidest<T>>(on, "relu_gradient", count, ReluGradient<T, false>{at, gradient, out});
  });
}

void dropout(const Queue& on, Type type, const Dropout& dropout, const void* x, void* y,
             std::int64_t count, bool accumulate) {
  const std::uint64_t mixed_stream = mix64(dropout.stream + 0x9e3779b97f4a7c15ULL);
  const auto threshold = static_cast<std::uint64_t>(dropout.keep * 0x1p32);
  const auto scale = static_cast<float>(1 / dropout.keep);
  with_type(type, [&]<class T>() {
    const auto* in = static_cast<const T*>(x);
    auto* out = static_cast<T*>(y);
    if (accumulate)
      each<kWidest<T>>(
          on, "dropout", count,
          DropoutOf<T, true>{dropout.step_key, mixed_stream, threshold, scale, in, out});
    else
      each<kWidest<T>>(
          on, "dropout", count,
          DropoutOf<T, false>{dropout.step_key, mixed_stream, threshold, scale, in, out});
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

void set_u64(const Queue& on, std::uint64_t* to, std::uint64_t value) {
  set_u64_kernel<<<1, 1, 0, on.stream>>>(to, value);
  check_launch("set_u64");
}

}  // namespace tandem::cuda

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

template <class T, int N>
struct Pair {
  Vector<T, N> a, b;
};

template <class T>
struct Add {
  const T *a, *b;
  T* y;

  template <int N>
  __device__ Pair<T, N> load(std::int64_t i) const {
    return {cuda::load<N>(a + i), cuda::load<N>(b + i)};
  }
  template <int N>
  __device__ void put(std::int64_t i, const Pair<T, N>& loaded) const {
    float left[N], right[N];
    to_floats(loaded.a, left);
    to_floats(loaded.b, right);
#pragma unroll
    for (int k = 0; k < N; ++k) left[k] += right[k];
    store_floats(y + i, left);
  }
};

// Every operation is rounded separately, as on the CPU.
template <class T>
struct WeightedSum {
  float alpha, beta;
  const T *a, *b;
  T* y;

  template <int N>
  __device__ Pair<T, N> load(std::int64_t i) const {
    return {cuda::load<N>(a + i), cuda::load<N>(b + i)};
  }
  template <int N>
  __device__ void put(std::int64_t i, const Pair<T, N>& loaded) const {
    float left[N], right[N];
    to_floats(loaded.a, left);
    to_floats(loaded.b, right);
#pragma unroll
    for (int k = 0; k < N; ++k)
      left[k] = __fadd_rn(__fmul_rn(alpha, left[k]), __fmul_rn(beta, right[k]));
    store_floats(y + i, left);
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

// Same as Random::split(stream) of the Random with this key. The two halves of a random number
// decide on two neighbours, the high half on the first.
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

}  // namespace

void fill(const Queue& on, Type type, void* x, std::int64_t count, float value) {
  with_type(type, [&]<class T>() {
    each<kWidest<T>>(on, "fill", count, Fill<T>{static_cast<T*>(x), value});
  });
}

void add(const Queue& on, Type type, const void* a, const void* b, void* y, std::int64_t count) {
  with_type(type, [&]<class T>() {
    each<kWidest<T>>(
        on, "add", count,
        Add<T>{static_cast<const T*>(a), static_cast<const T*>(b), static_cast<T*>(y)});
  });
}

void weighted_sum(const Queue& on, Type type, float alpha, const void* a, float beta, const void* b,
                  void* y, std::int64_t count) {
  with_type(type, [&]<class T>() {
    each<kWidest<T>>(on, "weighted_sum", count,
                     WeightedSum<T>{alpha, beta, static_cast<const T*>(a), static_cast<const T*>(b),
                                    static_cast<T*>(y)});
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

void set_u64(const Queue& on, std::uint64_t* to, std::uint64_t value) {
  set_u64_kernel<<<1, 1, 0, on.stream>>>(to, value);
  check_launch("set_u64");
}

}  // namespace tandem::cuda

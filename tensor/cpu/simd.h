// The processor's vectors, through the compiler's vector types: arithmetic on them is written with
// the usual operators. What no operator says, a product with one lane of a vector, is here.
#pragma once

#include <utility>

#if defined(__ARM_NEON)
#include <arm_neon.h>
#endif

namespace tandem::simd {

#if defined(__AVX512F__)
inline constexpr int kBytes = 64, kRegisters = 32;
#elif defined(__AVX__)
inline constexpr int kBytes = 32, kRegisters = 16;
#elif defined(__aarch64__)
inline constexpr int kBytes = 16, kRegisters = 32;
#else
inline constexpr int kBytes = 16, kRegisters = 16;
#endif

template <class T>
struct VectorOf {
  using type [[gnu::vector_size(kBytes)]] = T;
  using unaligned [[gnu::vector_size(kBytes), gnu::aligned(alignof(T)), gnu::may_alias]] = T;
};
template <class T>
using Vector = typename VectorOf<T>::type;
template <class T>
inline constexpr int kWidth = kBytes / static_cast<int>(sizeof(T));

template <class T>
[[gnu::always_inline]] inline Vector<T> load(const T* from) {
  return *reinterpret_cast<const typename VectorOf<T>::unaligned*>(from);
}
template <class T>
[[gnu::always_inline]] inline void store(Vector<T> v, T* to) {
  *reinterpret_cast<typename VectorOf<T>::unaligned*>(to) = v;
}

// Copies `count` elements, known to the compiler: without a call.
template <int count, class T>
[[gnu::always_inline]] inline void copy(const T* __restrict from, T* __restrict to) {
  __builtin_memcpy(to, from, count * sizeof(T));
}

// Calls f(0), f(1), … f(n-1) with constants, so that arrays indexed by them live in registers.
template <int n, class F>
[[gnu::always_inline]] inline void unrolled(F&& f) {
  [&]<int... i>(std::integer_sequence<int, i...>) __attribute__((always_inline)) {
    (f(std::integral_constant<int, i>{}), ...);
  }
  (std::make_integer_sequence<int, n>{});
}

#if defined(__aarch64__)
// acc + b·a[lane] in one instruction.
template <int lane>
[[gnu::always_inline]] inline float32x4_t add_product_with_lane(float32x4_t acc, float32x4_t b,
                                                                float32x4_t a) {
  return vfmaq_laneq_f32(acc, b, a, lane);
}
template <int lane>
[[gnu::always_inline]] inline float64x2_t add_product_with_lane(float64x2_t acc, float64x2_t b,
                                                                float64x2_t a) {
  return vfmaq_laneq_f64(acc, b, a, lane);
}
#endif

}  // namespace tandem::simd

// The compiler's vectors (GCC's and Clang's vector extension), for loops that must keep several of
// them in registers, which automatic vectorisation does not do. They support the usual operators.
// Code written for a type V works with V = Vector<T> and, for the remainder at the end, with V = T.
#pragma once

#include <type_traits>
#include <utility>

#if defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace tandem {

#if defined(__AVX512F__)
inline constexpr int kVectorBytes = 64, kVectorRegisters = 32;
#elif defined(__AVX__)
inline constexpr int kVectorBytes = 32, kVectorRegisters = 16;
#elif defined(__aarch64__)
inline constexpr int kVectorBytes = 16, kVectorRegisters = 32;
#else
inline constexpr int kVectorBytes = 16, kVectorRegisters = 16;
#endif

template <class T>
struct VectorOf {
  typedef T type __attribute__((vector_size(kVectorBytes)));
};
template <class T>
using Vector = typename VectorOf<T>::type;
template <class T>
inline constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(T));

// V with only T's alignment.
template <class V, class T>
struct Unaligned {
  typedef V type __attribute__((aligned(alignof(T)), may_alias));
};

template <class V, class T>
[[gnu::always_inline]] inline V load(const T* from) {
  return *reinterpret_cast<const typename Unaligned<V, T>::type*>(from);
}

template <class V, class T>
[[gnu::always_inline]] inline void store(V v, T* to) {
  *reinterpret_cast<typename Unaligned<V, T>::type*>(to) = v;
}

// Copies a constant number of elements, without a call.
template <int count, class T>
[[gnu::always_inline]] inline void copy(const T* __restrict from, T* __restrict to) {
  __builtin_memcpy(to, from, count * sizeof(T));
}

// Calls f(0), f(1), … f(n-1) with constants, so that arrays indexed by them stay in registers.
template <int n, class F>
[[gnu::always_inline]] inline void unrolled(F&& f) {
  [&]<int... i>(std::integer_sequence<int, i...>) __attribute__((always_inline)) {
    (f(std::integral_constant<int, i>{}), ...);
  }
  (std::make_integer_sequence<int, n>{});
}

#if defined(__aarch64__)
// sum + b · a[lane] in one instruction, for which there is no operator.
template <int lane>
[[gnu::always_inline]] inline float32x4_t add_product_with_lane(float32x4_t sum, float32x4_t b,
                                                                float32x4_t a) {
  return vfmaq_laneq_f32(sum, b, a, lane);
}
template <int lane>
[[gnu::always_inline]] inline float64x2_t add_product_with_lane(float64x2_t sum, float64x2_t b,
                                                                float64x2_t a) {
  return vfmaq_laneq_f64(sum, b, a, lane);
}
#endif

}  // namespace tandem

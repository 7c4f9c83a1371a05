// Vectors of the compiler (GCC's and Clang's vector extension) for loops that must keep several of
// them in registers, which automatic vectorisation does not. Code written for a type V works with
// V = Vector<T> and, for what is left over at the end, with V = T.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace tandem {

#if defined(__AVX512F__)
inline constexpr int kVectorBytes = 64;
#elif defined(__AVX__)
inline constexpr int kVectorBytes = 32;
#else
inline constexpr int kVectorBytes = 16;
#endif

template <class T>
struct VectorOf {
  typedef T type __attribute__((vector_size(kVectorBytes)));
};
template <class T>
using Vector = typename VectorOf<T>::type;
template <class T>
inline constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(T));

template <class V, class T>
inline V load(const T* from) {
  V v;
  std::memcpy(&v, from, sizeof(V));
  return v;
}

template <class V, class T>
inline void store(V v, T* to) {
  std::memcpy(to, &v, sizeof(V));
}

}  // namespace tandem

// Loops that several operations share, on raw pointers. Those that touch every element of large
// tensors are written so that the compiler vectorises them: no calls and no branches in the body.
// `bench_kernels` measures their GB/s.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace tandem::kernels {

// Elements per tile of an element-wise loop: about 10 µs of work. That is well above the cost of
// handing a tile to another thread, and fits into the second-level cache.
inline constexpr std::int64_t kTileElements = 32 * 1024;

inline std::int64_t rows_per_tile(std::int64_t columns) {
  return std::max<std::int64_t>(1, kTileElements / std::max<std::int64_t>(1, columns));
}

// Calls f.template operator()<accumulate>().
template <class F>
void with_accumulate(bool accumulate, F&& f) {
  if (accumulate)
    f.template operator()<true>();
  else
    f.template operator()<false>();
}

template <bool kAccumulate, class T>
inline void put(T& out, T value) {
  if constexpr (kAccumulate)
    out += value;
  else
    out = value;
}

template <class T>
void add(const T* a, const T* b, T* y, std::int64_t count) {  // y may be a or b
  for (std::int64_t i = 0; i < count; ++i) y[i] = a[i] + b[i];
}

// sums[c] += Σ_r x[r, c], row after row. Four rows at a time, so that the sums are loaded and
// stored less often. The order of the additions is the same.
template <class T>
void add_rows(const T* __restrict x, T* __restrict sums, std::int64_t rows, std::int64_t columns) {
  for (; rows >= 4; rows -= 4, x += 4 * columns)
    for (std::int64_t c = 0; c < columns; ++c)
      sums[c] = sums[c] + x[c] + x[columns + c] + x[2 * columns + c] + x[3 * columns + c];
  for (; rows > 0; --rows, x += columns)
    for (std::int64_t c = 0; c < columns; ++c) sums[c] += x[c];
}

// A number's bits as an integer. In this order negative numbers and -0 come first, up to -infinity;
// then negative NaN; then 0 and the positive numbers. A floating-point comparison that does not
// take NaN for less would cost two to three times as many instructions.
template <class T>
using Bits = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
template <class T>
inline constexpr auto kMinusInfinity = std::bit_cast<Bits<T>>(-std::numeric_limits<T>::infinity());

// max(x, 0), but NaN stays NaN.
template <class T>
inline T relu_of(T x) {
  const auto bits = std::bit_cast<Bits<T>>(x);
  return std::bit_cast<T>(bits <= kMinusInfinity<T> ? Bits<T>{0} : bits);
}

template <class T>
inline bool is_positive(T y) {  // or NaN
  const auto bits = std::bit_cast<Bits<T>>(y);
  return !((bits <= kMinusInfinity<T>) | (bits == 0));
}

}  // namespace tandem::kernels

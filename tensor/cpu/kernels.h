// The loops of the CPU backend, on raw pointers and plain ranges. Those that touch every element of
// large tensors are written so that the compiler vectorises them: no calls and no branches in the
// body. `bench_kernels` shows their GB/s.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "base/random.h"

namespace tandem::kernels {

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

template <class T>
void add_bias(const T* __restrict bias, T* __restrict y, std::int64_t rows, std::int64_t columns) {
  for (std::int64_t r = 0; r < rows; ++r, y += columns)
    for (std::int64_t c = 0; c < columns; ++c) y[c] += bias[c];
}

// sums[c] += Σ_r x[r, c], row after row; four rows at a time, so that the sums are loaded and
// stored less often. The order of the additions is the same.
template <class T>
void add_rows(const T* __restrict x, T* __restrict sums, std::int64_t rows, std::int64_t columns) {
  for (; rows >= 4; rows -= 4, x += 4 * columns)
    for (std::int64_t c = 0; c < columns; ++c)
      sums[c] = sums[c] + x[c] + x[columns + c] + x[2 * columns + c] + x[3 * columns + c];
  for (; rows > 0; --rows, x += columns)
    for (std::int64_t c = 0; c < columns; ++c) sums[c] += x[c];
}

// A number as an integer. Those up to that of -infinity are the negative numbers and -0; above it
// are NaN with a sign, then 0 and the positive. Comparing numbers, where NaN must not be taken for
// less, costs two to three times as many instructions.
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
void relu(const T* __restrict x, T* __restrict y, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) y[i] = relu_of(x[i]);
}
template <class T>
void relu(T* y, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) y[i] = relu_of(y[i]);
}

template <class T>
bool is_positive(T y) {  // or NaN
  const auto bits = std::bit_cast<Bits<T>>(y);
  return !((bits <= kMinusInfinity<T>) | (bits == 0));
}

template <bool kAccumulate, class T>
void relu_gradient(const T* __restrict y, const T* __restrict dy, T* __restrict dx,
                   std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const T g = dy[i];  // loaded whatever y is: a conditional load would not be vectorised
    put<kAccumulate>(dx[i], is_positive(y[i]) ? g : T{0});
  }
}
template <class T>
void relu_gradient(const T* __restrict y, T* __restrict dx, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) dx[i] = is_positive(y[i]) ? dx[i] : T{0};
}

// Elements [begin, end), `begin` even: a random number's two halves decide about two neighbours.
template <bool kAccumulate, class T>
void dropout(const T* __restrict x, double keep, const Random& random, T* __restrict y,
             std::int64_t begin, std::int64_t end) {
  const auto threshold = static_cast<std::uint64_t>(keep * 0x1p32);
  const T scales[2] = {0, static_cast<T>(1 / keep)};  // looked up: a branch would be mispredicted
  for (std::int64_t i = begin; i < end; i += 2) {
    const std::uint64_t bits = random.bits_at(static_cast<std::uint64_t>(i / 2));
    put<kAccumulate>(y[i], x[i] * scales[(bits >> 32) < threshold]);
    if (i + 1 < end) put<kAccumulate>(y[i + 1], x[i + 1] * scales[(bits & 0xffffffff) < threshold]);
  }
}

// One row of softmax; returns log Σ exp(logits), stable for large logits.
template <class T>
T softmax_row(const T* __restrict logits, T* __restrict probabilities, std::int64_t classes) {
  const T largest = *std::max_element(logits, logits + classes);
  T sum = 0;
  for (std::int64_t c = 0; c < classes; ++c) {
    probabilities[c] = std::exp(logits[c] - largest);
    sum += probabilities[c];
  }
  for (std::int64_t c = 0; c < classes; ++c) probabilities[c] /= sum;
  return largest + std::log(sum);
}

// Cross-entropy of one row against (1 - smoothing)·[c = label] + smoothing/classes.
template <class T>
double cross_entropy_row(const T* logits, T log_sum, std::int64_t label, std::int64_t classes,
                         double smoothing) {
  const double at_label = static_cast<double>(log_sum) - static_cast<double>(logits[label]);
  if (smoothing == 0) return at_label;
  double total = 0;
  for (std::int64_t c = 0; c < classes; ++c) total += static_cast<double>(logits[c]);
  const double everywhere = static_cast<double>(log_sum) - total / static_cast<double>(classes);
  return (1 - smoothing) * at_label + smoothing * everywhere;
}

template <bool kAccumulate, class T>
void cross_entropy_gradient_row(const T* __restrict probabilities, std::int64_t label,
                                std::int64_t classes, double smoothing, T scale,
                                T* __restrict dlogits) {
  const T everywhere = static_cast<T>(smoothing / static_cast<double>(classes));
  const T at_label = everywhere + static_cast<T>(1 - smoothing);
  for (std::int64_t c = 0; c < classes; ++c)
    put<kAccumulate>(dlogits[c], scale * (probabilities[c] - (c == label ? at_label : everywhere)));
}

template <bool kNesterov, class T>
void sgd(T rate, T mu, T decay, const T* __restrict gradient, T* __restrict momentum,
         T* __restrict value, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const T g = gradient[i] + decay * value[i];
    const T v = mu * momentum[i] + g;
    momentum[i] = v;
    value[i] -= rate * (kNesterov ? g + mu * v : v);
  }
}

}  // namespace tandem::kernels

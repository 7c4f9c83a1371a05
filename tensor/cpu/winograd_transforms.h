// The six-point transforms of winograd.h, at the points 0, 1, -1, 2, -2 and ∞. V is a number or a
// vector of channels.
#pragma once

#include <array>

namespace tandem::winograd {

inline constexpr int kPoints = 6;
inline constexpr int kPositions = kPoints * kPoints;

template <class V>
using Six = std::array<V, kPoints>;

// Bᵀ d
template <class V>
[[gnu::always_inline]] inline Six<V> tile_transform(const Six<V>& d) {
  const V odd = 4 * d[1] - d[3], even = d[4] - 4 * d[2];
  const V odd2 = 2 * (d[3] - d[1]), even2 = d[4] - d[2];
  return {4 * d[0] - 5 * d[2] + d[4], even - odd, even + odd, even2 + odd2, even2 - odd2,
          4 * d[1] - 5 * d[3] + d[5]};
}

// Aᵀ u, m results: Σ over the points of u · pointⁱ, the last with ∞.
template <int m, class V>
[[gnu::always_inline]] inline std::array<V, m> output_transform(const Six<V>& u) {
  const V sum1 = u[1] + u[2], difference1 = u[1] - u[2];
  const V sum2 = u[3] + u[4], difference2 = u[3] - u[4];
  if constexpr (m == 2)
    return {u[0] + sum1 + sum2, difference1 + 2 * difference2 + u[5]};
  else
    return {u[0] + sum1 + sum2, difference1 + 2 * difference2, sum1 + 4 * sum2,
            difference1 + 8 * difference2 + u[5]};
}

// A y, from m values
template <int m, class V>
[[gnu::always_inline]] inline Six<V> output_transform_transposed(const std::array<V, m>& y) {
  if constexpr (m == 2) {
    return {y[0], y[0] + y[1], y[0] - y[1], y[0] + 2 * y[1], y[0] - 2 * y[1], y[1]};
  } else {
    const V even1 = y[0] + y[2], odd1 = y[1] + y[3];
    const V even2 = y[0] + 4 * y[2], odd2 = 2 * y[1] + 8 * y[3];
    return {y[0], even1 + odd1, even1 - odd1, even2 + odd2, even2 - odd2, y[3]};
  }
}

// G g, from r values: the filter's polynomial at the points, each divided by Π (point - others).
template <int r, class T, class V>
[[gnu::always_inline]] inline Six<V> filter_transform(const std::array<V, r>& g) {
  V even1 = g[0], odd1 = g[1], even2 = g[0], odd2 = 2 * g[1];
  for (int i = 2; i < r; ++i) {
    (i % 2 ? odd1 : even1) += g[i];
    (i % 2 ? odd2 : even2) += static_cast<T>(1 << i) * g[i];
  }
  constexpr T fourth = T{1} / 4, sixth = T{1} / 6, part = T{1} / 24;
  return {fourth * g[0],         -sixth * (even1 + odd1), -sixth * (even1 - odd1),
          part * (even2 + odd2), part * (even2 - odd2),   g[r - 1]};
}

// Gᵀ u, r values
template <int r, class T, class V>
[[gnu::always_inline]] inline std::array<V, r> filter_transform_transposed(const Six<V>& u) {
  constexpr T fourth = T{1} / 4, sixth = T{1} / 6, part = T{1} / 24;
  const V sum1 = -sixth * (u[1] + u[2]), difference1 = -sixth * (u[1] - u[2]);
  const V sum2 = part * (u[3] + u[4]), difference2 = part * (u[3] - u[4]);
  std::array<V, r> g;
  g[0] = fourth * u[0] + sum1 + sum2;
  for (int i = 1; i < r; ++i)
    g[i] = (i % 2 ? difference1 : sum1) + static_cast<T>(1 << i) * (i % 2 ? difference2 : sum2);
  g[r - 1] = g[r - 1] + u[5];
  return g;
}

// A map of `in` values to `out` values, applied to the rows and then to the columns of a square:
// to(i, j, value) receives the out × out results of the in × in values from(i, j).
template <int in, int out, class V, class Map, class From, class To>
[[gnu::always_inline]] inline void both_ways(const Map& map, const From& from, const To& to) {
  std::array<std::array<V, in>, out> half;  // [result row][column]
  for (int j = 0; j < in; ++j) {
    std::array<V, in> column;
    for (int i = 0; i < in; ++i) column[i] = from(i, j);
    const std::array<V, out> results = map(column);
    for (int i = 0; i < out; ++i) half[i][j] = results[i];
  }
  for (int i = 0; i < out; ++i) {
    const std::array<V, out> results = map(half[i]);
    for (int j = 0; j < out; ++j) to(i, j, results[j]);
  }
}

}  // namespace tandem::winograd

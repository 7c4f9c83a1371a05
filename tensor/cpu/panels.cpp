#include "tensor/cpu/panels.h"

namespace tandem::panels {
namespace {

// The sums of kSomeRows rows. Compiled with fused multiply-adds (see the Makefile).
template <int kSomeRows, class T>
void multiply_rows(std::int64_t depth, const T* __restrict a, const T* __restrict b, T* const* c,
                   const T* const* start) {
  constexpr int kVectors = kColumns<T> / kLanes<T>;
  Vector<T> sums[kSomeRows][kVectors] = {};
#if defined(__aarch64__)
  // The next vectors are loaded right after the last use of the current ones. This gives 81 GFLOP/s
  // on a Neoverse-V1, compared with 76 when each step begins with its loads.
  constexpr int kGroups = kSomeRows / kLanes<T>;
  Vector<T> rows[kGroups], columns[kVectors];
  const auto load_rows = [&](auto g) __attribute__((always_inline)) {
    rows[g] = load<Vector<T>>(a + g * kLanes<T>);
  };
  const auto load_columns = [&](auto j) __attribute__((always_inline)) {
    columns[j] = load<Vector<T>>(b + j * kLanes<T>);
  };
  const auto add_products = [&](auto g) __attribute__((always_inline)) {
    unrolled<kLanes<T>>([&](auto lane) __attribute__((always_inline)) {
      unrolled<kVectors>([&](auto j) __attribute__((always_inline)) {
        auto& sum = sums[g * kLanes<T> + lane][j];
        sum = add_product_with_lane<lane>(sum, columns[j], rows[g]);
      });
    });
  };
  if (depth > 0) {
    unrolled<kGroups>(load_rows);
    unrolled<kVectors>(load_columns);
    for (std::int64_t k = 1; k < depth; ++k) {
      a += kRows;
      b += kColumns<T>;
      unrolled<kGroups>([&](auto g) __attribute__((always_inline)) {
        add_products(g);
        load_rows(g);
      });
      unrolled<kVectors>(load_columns);
    }
    unrolled<kGroups>(add_products);
  }
#else
  for (std::int64_t k = 0; k < depth; ++k, a += kRows, b += kColumns<T>) {
    Vector<T> columns[kVectors];
    unrolled<kVectors>([&](auto j) __attribute__((always_inline)) {
      columns[j] = load<Vector<T>>(b + j * kLanes<T>);
    });
    unrolled<kSomeRows>([&](auto i) __attribute__((always_inline)) {
      unrolled<kVectors>([&](auto j)
                             __attribute__((always_inline)) { sums[i][j] += columns[j] * a[i]; });
    });
  }
#endif
  unrolled<kSomeRows>([&](auto i) __attribute__((always_inline)) {
    unrolled<kVectors>([&](auto j) __attribute__((always_inline)) {
      if (start) sums[i][j] += load<Vector<T>>(start[i] + j * kLanes<T>);
      store(sums[i][j], c[i] + j * kLanes<T>);
    });
  });
}

}  // namespace

template <class T>
void multiply(std::int64_t depth, const T* a, const T* b, int rows, T* const* c,
              const T* const* start) {
  if (rows == kRows) return multiply_rows<kRows>(depth, a, b, c, start);
  // The unused rows of a partly filled panel are written to `nowhere`.
  std::array<T, kColumns<T>> nowhere{};
  std::array<T*, kRows> to;
  std::array<const T*, kRows> from;
  for (int i = 0; i < kRows; ++i) {
    to[i] = i < rows ? c[i] : nowhere.data();
    from[i] = i < rows && start ? start[i] : nowhere.data();
  }
  const T* const* begin = start ? from.data() : nullptr;
  if (3 * rows <= kRows) return multiply_rows<kRows / 3>(depth, a, b, to.data(), begin);
  if (3 * rows <= 2 * kRows) return multiply_rows<2 * kRows / 3>(depth, a, b, to.data(), begin);
  multiply_rows<kRows>(depth, a, b, to.data(), begin);
}
template void multiply(std::int64_t, const float*, const float*, int, float* const*,
                       const float* const*);
template void multiply(std::int64_t, const double*, const double*, int, double* const*,
                       const double* const*);

namespace {

using Four [[gnu::vector_size(16)]] = float;

// Four rows of four elements.
[[gnu::always_inline]] inline void transpose_four(const float* const* rows, std::int64_t k,
                                                  float* to, int pitch) {
  Four r[4];
  for (int i = 0; i < 4; ++i) r[i] = load<Four>(rows[i] + k);
  const Four low01 = __builtin_shufflevector(r[0], r[1], 0, 4, 1, 5);
  const Four high01 = __builtin_shufflevector(r[0], r[1], 2, 6, 3, 7);
  const Four low23 = __builtin_shufflevector(r[2], r[3], 0, 4, 1, 5);
  const Four high23 = __builtin_shufflevector(r[2], r[3], 2, 6, 3, 7);
  const Four columns[4] = {__builtin_shufflevector(low01, low23, 0, 1, 4, 5),
                           __builtin_shufflevector(low01, low23, 2, 3, 6, 7),
                           __builtin_shufflevector(high01, high23, 0, 1, 4, 5),
                           __builtin_shufflevector(high01, high23, 2, 3, 6, 7)};
  for (int i = 0; i < 4; ++i) store(columns[i], to + (k + i) * pitch);
}

}  // namespace

template <class T>
void transpose(const T* const* rows, int count, std::int64_t depth, T* panel, int pitch) {
  int i = 0;
  if constexpr (sizeof(T) == 4) {
    // If the last four are not complete, they overlap with the four before.
    for (; depth >= 4 && i + 4 <= count; i += 4)
      for (std::int64_t k = 0; k < depth; k += 4)
        transpose_four(rows + i, std::min(k, depth - 4), panel + i, pitch);
  }
  for (; i < count; ++i)
    for (std::int64_t k = 0; k < depth; ++k) panel[k * pitch + i] = rows[i][k];
}
template void transpose(const float* const*, int, std::int64_t, float*, int);
template void transpose(const double* const*, int, std::int64_t, double*, int);

}  // namespace tandem::panels

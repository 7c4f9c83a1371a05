// Products of packed panels: the innermost loop of every convolution.
//
// A panel of A holds kRows rows of the left matrix, a panel of B kColumns columns of the right one,
// both depth-major, so that the loop reads them straight through:
//
//     a[depth][kRows]    b[depth][kColumns]    c[i][j] = start[i][j] + Σ_k a[k][i] · b[k][j]
//
// The kRows × kColumns sums stay in registers the whole time. The start is added at the end: a long
// sum consists of sums of up to kDepth products, which keeps it precise. The caller packs the
// panels. A panel of A has about 12 KB and is multiplied with all panels of B while it is in the
// first-level cache. The panels of B, a block of up to kDepth deep, stay in the second-level cache.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "tensor/cpu/simd.h"
#include "tensor/tensor.h"

namespace tandem::panels {

template <class T>
inline constexpr int kColumns = 2 * kLanes<T>;
inline constexpr int kRows = kVectorRegisters >= 32 ? 12 : 6;
inline constexpr std::int64_t kDepth = 256;

inline constexpr std::int64_t pieces(std::int64_t count, std::int64_t size) {
  return (count + size - 1) / size;
}
inline constexpr std::int64_t rounded_up(std::int64_t count, std::int64_t size) {
  return pieces(count, size) * size;
}

// Temporary memory for `count` elements of the same kind.
inline Tensor scratch(std::int64_t count, const Tensor& like) {
  return Tensor::empty({count}, like.dtype(), like.device());
}

// The output of a product, cut into tiles that depend only on its shape: rows first, then columns
// if there are too few tiles to share.
struct Grid {
  struct Tile {
    std::int64_t row, rows, column, columns;
  };

  Grid(std::int64_t all_rows, std::int64_t rows_of_tile, std::int64_t all_columns)
      : rows(all_rows), columns(all_columns), tile_rows(rows_of_tile) {
    constexpr std::int64_t kFewTiles = 32, kMinColumns = 64;
    const std::int64_t row_tiles = pieces(rows, tile_rows);
    const std::int64_t wanted = pieces(kFewTiles, std::max<std::int64_t>(1, row_tiles));
    tile_columns = std::max(kMinColumns, rounded_up(pieces(columns, wanted), kMinColumns));
    column_tiles = pieces(columns, tile_columns);
    tiles = row_tiles * column_tiles;
  }
  Tile tile(std::int64_t i) const {
    const std::int64_t row = i / column_tiles * tile_rows, column = i % column_tiles * tile_columns;
    return {row, std::min(tile_rows, rows - row), column, std::min(tile_columns, columns - column)};
  }

  std::int64_t rows, columns, tile_rows, tile_columns, column_tiles, tiles;
};

// Multiplies two panels. c and start point to each row's first element. The rows of `start` may be
// the same (a bias) or c's own (to accumulate); without start the sums begin at zero.
template <class T>
void multiply(std::int64_t depth, const T* a, const T* b, int rows, T* const* c,
              const T* const* start);
extern template void multiply(std::int64_t, const float*, const float*, int, float* const*,
                              const float* const*);
extern template void multiply(std::int64_t, const double*, const double*, int, double* const*,
                              const double* const*);

// panel[depth][pitch] = the transpose of `rows` rows of `depth` elements; pitch ≥ rows. The
// elements between rows and pitch are not written.
template <class T>
void transpose(const T* const* rows, int count, std::int64_t depth, T* panel, int pitch);
extern template void transpose(const float* const*, int, std::int64_t, float*, int);
extern template void transpose(const double* const*, int, std::int64_t, double*, int);

// panel[depth][kRows] = `rows` neighbours at each of `depth` places, `pitch` apart.
template <class T>
void copy_rows(const T* from, std::int64_t pitch, std::int64_t depth, int rows, T* panel) {
  for (std::int64_t k = 0; k < depth; ++k, from += pitch, panel += kRows)
    if (rows == kRows)
      copy<kRows>(from, panel);
    else
      std::copy_n(from, rows, panel);
}

// The initial value of a block's sums.
enum class Start { zero, bias, sums };

// All panels of a block: rows [0, rows) of A times `columns` columns of B.
template <class T>
struct Block {
  std::int64_t rows, columns, depth;
  const T* b;            // panels of [depth][kColumns]
  std::int64_t b_pitch;  // elements from one panel of b to the next
  Start start = Start::zero;
  const T* bias = nullptr;  // [columns]
};

// pack(first, count, panel) fills a panel of A with rows [first, first + count). c_row(row) is the
// destination of a row. `panel` is memory for one panel of A. It is cleared if the last one is not
// full, because its other rows are multiplied too, and denormal numbers are slow.
template <class T, class Pack, class Row>
void multiply_block(const Block<T>& block, T* panel, Pack&& pack, Row&& c_row) {
  constexpr int columns = kColumns<T>;
  std::array<T, std::size_t{kRows} * columns> edge{};  // for a panel that is not full
  if (block.rows % kRows) std::fill_n(panel, block.depth * kRows, T{0});
  for (std::int64_t first = 0; first < block.rows; first += kRows) {
    const int rows = static_cast<int>(std::min<std::int64_t>(kRows, block.rows - first));
    pack(first, rows, panel);
    std::array<T*, kRows> c, at;
    std::array<const T*, kRows> start;
    for (int i = 0; i < rows; ++i) c[i] = c_row(first + i);
    for (std::int64_t j = 0; j < block.columns; j += columns) {
      const std::int64_t wide = std::min<std::int64_t>(columns, block.columns - j);
      const bool whole = wide == columns;
      for (int i = 0; i < rows; ++i) {
        at[i] = whole ? c[i] + j : edge.data() + i * columns;
        const T* from = block.start == Start::bias ? block.bias + j : c[i] + j;
        start[i] = whole ? from : at[i];
        if (!whole && block.start != Start::zero) std::copy_n(from, wide, at[i]);
      }
      multiply(block.depth, panel, block.b + j / columns * block.b_pitch, rows, at.data(),
               block.start == Start::zero ? nullptr : start.data());
      if (!whole)
        for (int i = 0; i < rows; ++i) std::copy_n(at[i], wide, c[i] + j);
    }
  }
}

}  // namespace tandem::panels

#include "tensor/cpu/convolution.h"

#include <algorithm>

#include "tensor/cpu/panels.h"
#include "tensor/cpu/windows.h"
#include "tensor/cpu/winograd.h"

namespace tandem {
namespace {

using panels::kColumns;
using panels::kDepth;
using panels::kRows;
using panels::pieces;
using panels::rounded_up;
using panels::Start;

// The output of a product is cut into a grid of tiles, by its shape alone: rows first, then columns
// while there are too few tiles to share.
struct Grid {
  static constexpr std::int64_t kTileRows = 8 * kRows, kFewTiles = 32, kMinColumns = 64;

  Grid(std::int64_t all_rows, std::int64_t all_columns)
      : rows(all_rows), columns(all_columns), row_tiles(pieces(rows, kTileRows)) {
    const std::int64_t wanted = pieces(kFewTiles, std::max<std::int64_t>(1, row_tiles));
    tile_columns = std::max(kMinColumns, rounded_up(pieces(columns, wanted), kMinColumns));
    column_tiles = pieces(columns, tile_columns);
  }
  std::int64_t tiles() const { return row_tiles * column_tiles; }

  std::int64_t rows, columns, row_tiles, column_tiles, tile_columns;
};

template <class T>
Tensor scratch(std::int64_t count, const Tensor& like) {
  return Tensor::empty({count}, DtypeOf<T>::value, like.device());
}

// c = windows · b, where b is packed in whole panels of all columns and all of its depth.
template <class T, class Row>
void multiply_windows(const Windows<T>& windows, const Tensor& b, std::int64_t columns, Start start,
                      const T* bias, const Row& c_row, ThreadPool& threads) {
  const std::int64_t depth = windows.columns();
  const Grid grid(windows.rows(), columns);
  threads.run(grid.tiles(), [&](std::int64_t tile) {
    const std::int64_t first = tile / grid.column_tiles * Grid::kTileRows;
    const std::int64_t column = tile % grid.column_tiles * grid.tile_columns;
    const Tensor panel = scratch<T>(kRows * kDepth, b);
    for (std::int64_t k = 0; k < depth; k += kDepth) {
      const std::int64_t deep = std::min(kDepth, depth - k);
      const panels::Block<T> block{.rows = std::min(Grid::kTileRows, grid.rows - first),
                                   .columns = std::min(grid.tile_columns, columns - column),
                                   .depth = deep,
                                   .b = b.data<T>() + column * depth + k * kColumns<T>,
                                   .b_pitch = depth * kColumns<T>,
                                   .start = k > 0 ? Start::sums : start,
                                   .bias = bias ? bias + column : nullptr};
      panels::multiply_block(
          block, panel.data<T>(),
          [&](std::int64_t row, int count, T* to) {
            windows.pack_rows(first + row, count, k, k + deep, to);
          },
          [&](std::int64_t row) { return c_row(first + row) + column; });
    }
  });
}

// The filters of one group, a matrix [k, taps · channels], as panels of B: k are the columns.
template <class T>
Tensor pack_filters(const Tensor& filter, std::int64_t first, std::int64_t count,
                    ThreadPool& threads) {
  constexpr int wide = kColumns<T>;
  const std::int64_t depth = filter.count() / filter.size(0);
  Tensor packed = scratch<T>(rounded_up(count, wide) * depth, filter);
  threads.run(pieces(count, wide), [&](std::int64_t panel) {
    T* to = packed.data<T>() + panel * wide * depth;
    std::array<const T*, wide> rows;
    const int used = static_cast<int>(std::min<std::int64_t>(wide, count - panel * wide));
    if (used < wide) std::fill_n(to, wide * depth, T{0});
    for (int i = 0; i < used; ++i) rows[i] = filter.data<T>() + (first + panel * wide + i) * depth;
    panels::transpose(rows.data(), used, depth, to, wide);
  });
  return packed;
}

// The same filters the other way round, for some of their taps: columns are the channels, the depth
// is taps · k.
template <class T>
Tensor pack_filters_transposed(const Tensor& filter, std::int64_t first, std::int64_t count,
                               const std::vector<std::int64_t>& taps, ThreadPool& threads) {
  constexpr int wide = kColumns<T>;
  const std::int64_t channels = filter.size(3), all_taps = filter.size(1) * filter.size(2);
  const std::int64_t depth = static_cast<std::int64_t>(taps.size()) * count;
  Tensor packed = scratch<T>(rounded_up(channels, wide) * depth, filter);
  threads.run(pieces(channels, wide), [&](std::int64_t panel) {
    T* to = packed.data<T>() + panel * wide * depth;
    const std::int64_t used = std::min<std::int64_t>(wide, channels - panel * wide);
    for (const std::int64_t tap : taps)
      for (std::int64_t k = first; k < first + count; ++k, to += wide) {
        const T* from = filter.data<T>() + (k * all_taps + tap) * channels + panel * wide;
        if (used == wide) {
          copy<wide>(from, to);
        } else {
          std::copy_n(from, used, to);
          std::fill(to + used, to + wide, T{0});
        }
      }
  });
  return packed;
}

template <class T>
Windows<T> windows_of(const Convolution& o, const Tensor& x, const Shape& filter, const Shape& y,
                      std::int64_t group) {
  std::vector<Tap> taps;
  for (std::int64_t r = 0; r < filter[1]; ++r)
    for (std::int64_t s = 0; s < filter[2]; ++s)
      taps.push_back({r * o.dilation - o.padding, s * o.dilation - o.padding});
  return Windows<T>(x.data<T>(), x.shape(), group * filter[3], filter[3], y[1], y[2], o.stride,
                    std::move(taps));
}

template <class T>
void forward(const Convolution& o, const Tensor& x, const Tensor& filter, const Tensor& bias,
             const Tensor& y, ThreadPool& threads) {
  const std::int64_t all = y.size(3), filters = all / o.groups;
  for (std::int64_t g = 0; g < o.groups; ++g) {
    const Tensor b = pack_filters<T>(filter, g * filters, filters, threads);
    const auto windows = windows_of<T>(o, x, filter.shape(), y.shape(), g);
    T* out = y.data<T>() + g * filters;
    multiply_windows(
        windows, b, filters, bias.defined() ? Start::bias : Start::zero,
        bias.defined() ? bias.data<T>() + g * filters : nullptr,
        [=](std::int64_t row) { return out + row * all; }, threads);
  }
}

// Which taps of a filter meet the pixels that lie `phase` behind a multiple of the stride, and
// which output pixel they connect them with.
struct Phase {
  Phase(const Convolution& o, std::int64_t phase, std::int64_t taps) {
    for (std::int64_t r = taps; r-- > 0;) {  // so that the output pixels ascend
      const std::int64_t distance = phase + o.padding - r * o.dilation;
      if (distance % o.stride == 0) {
        tap.push_back(r);
        shift.push_back(distance / o.stride);
      }
    }
  }
  std::vector<std::int64_t> tap, shift;
};

// Pixels of dx that lie stride apart are met by the same taps: they are the output of a convolution
// of dy with stride 1. There are stride² such sets.
template <class T>
void data_gradient(const Convolution& o, const Tensor& dy, const Tensor& filter, const Tensor& dx,
                   bool accumulate, ThreadPool& threads) {
  const std::int64_t filters = dy.size(3) / o.groups, channels = filter.size(3);
  const std::int64_t height = dx.size(1), width = dx.size(2), all = dx.size(3);
  for (std::int64_t g = 0; g < o.groups; ++g)
    for (std::int64_t down = 0; down < std::min(o.stride, height); ++down)
      for (std::int64_t right = 0; right < std::min(o.stride, width); ++right) {
        const Phase rows(o, down, filter.size(1)), columns(o, right, filter.size(2));
        std::vector<Tap> taps;
        std::vector<std::int64_t> order;
        for (std::size_t r = 0; r < rows.tap.size(); ++r)
          for (std::size_t s = 0; s < columns.tap.size(); ++s) {
            taps.push_back({rows.shift[r], columns.shift[s]});
            order.push_back(rows.tap[r] * filter.size(2) + columns.tap[s]);
          }
        const std::int64_t h = pieces(height - down, o.stride), w = pieces(width - right, o.stride);
        T* out = dx.data<T>() + (down * width + right) * all + g * channels;
        const auto row = [=, stride = o.stride](std::int64_t i) {
          const std::int64_t n = i / (h * w), p = i % (h * w) / w, q = i % w;
          return out + ((n * height + p * stride) * width + q * stride) * all;
        };
        if (taps.empty()) {  // no window ever covers these pixels
          if (!accumulate)
            for (std::int64_t i = 0; i < dx.size(0) * h * w; ++i)
              std::fill_n(row(i), channels, T{0});
          continue;
        }
        const Windows<T> windows(dy.data<T>(), dy.shape(), g * filters, filters, h, w, 1, taps);
        const Tensor b = pack_filters_transposed<T>(filter, g * filters, filters, order, threads);
        multiply_windows(windows, b, channels, accumulate ? Start::sums : Start::zero,
                         static_cast<const T*>(nullptr), row, threads);
      }
}

// dfilter[k, taps · channels] = dyᵀ · windows, whose depth are the output pixels. Where there are
// few tiles, the pixels are cut into parts with sums of their own, which are then added in order.
template <class T>
void filter_gradient(const Convolution& o, const Tensor& x, const Tensor& dy, const Tensor& dfilter,
                     bool accumulate, ThreadPool& threads) {
  constexpr std::int64_t kTileK = 16 * kRows, kTileColumns = Windows<T>::kMostColumns, kTiles = 32,
                         kMinPart = 2 * kDepth;
  const std::int64_t all = dy.size(3), filters = all / o.groups;
  const std::int64_t columns = dfilter.count() / all, pixels = dy.count() / all;
  const std::int64_t k_tiles = pieces(filters, kTileK),
                     column_tiles = pieces(columns, kTileColumns);
  const std::int64_t tiles = o.groups * k_tiles * column_tiles;
  const std::int64_t parts =
      std::clamp<std::int64_t>(kTiles / tiles, 1, std::max<std::int64_t>(1, pixels / kMinPart));
  const std::int64_t part_pixels = rounded_up(pieces(pixels, parts), kDepth);

  std::vector<Windows<T>> windows;
  for (std::int64_t g = 0; g < o.groups; ++g)
    windows.push_back(windows_of<T>(o, x, dfilter.shape(), dy.shape(), g));
  const Tensor sums = parts > 1 ? scratch<T>(parts * dfilter.count(), dfilter) : dfilter;

  threads.run(parts * tiles, [&](std::int64_t task) {
    const std::int64_t part = task / tiles, g = task % tiles / (k_tiles * column_tiles);
    const std::int64_t k0 = task % k_tiles * kTileK, ks = std::min(kTileK, filters - k0);
    const std::int64_t j0 = task % tiles / k_tiles % column_tiles * kTileColumns;
    const std::int64_t js = std::min(kTileColumns, columns - j0);
    T* out = sums.data<T>() + part * dfilter.count() + (g * filters + k0) * columns + j0;
    const Tensor panel = scratch<T>(kRows * kDepth, dy);
    const Tensor b = scratch<T>(rounded_up(js, kColumns<T>) * kDepth, dy);
    const std::int64_t begin = part * part_pixels, end = std::min(pixels, begin + part_pixels);
    bool first = true;
    for (std::int64_t p = begin; p < end || first; p += kDepth) {
      const std::int64_t deep = std::clamp<std::int64_t>(end - p, 0, kDepth);
      windows[static_cast<std::size_t>(g)].pack_columns(p, deep, j0, j0 + js, b.data<T>(),
                                                        deep * kColumns<T>);
      const bool add = !first || (accumulate && parts == 1);
      panels::multiply_block(
          panels::Block<T>{.rows = ks,
                           .columns = js,
                           .depth = deep,
                           .b = b.data<T>(),
                           .b_pitch = deep * kColumns<T>,
                           .start = add ? Start::sums : Start::zero},
          panel.data<T>(),
          [&](std::int64_t row, int count, T* to) {
            const T* from = dy.data<T>() + p * all + g * filters + k0 + row;
            for (std::int64_t i = 0; i < deep; ++i, from += all, to += kRows)
              if (count == kRows)
                copy<kRows>(from, to);
              else
                std::copy_n(from, count, to);
          },
          [&](std::int64_t row) { return out + row * columns; });
      first = false;
    }
  });
  if (parts == 1) return;
  constexpr std::int64_t kElements = 16 * 1024;
  threads.run_ranges(dfilter.count(), kElements, [&](std::int64_t begin, std::int64_t end) {
    T* to = dfilter.data<T>();
    for (std::int64_t part = 0; part < parts; ++part) {
      const T* from = sums.data<T>() + part * dfilter.count();
      if (part == 0 && !accumulate)
        std::copy(from + begin, from + end, to + begin);
      else
        for (std::int64_t i = begin; i < end; ++i) to[i] += from[i];
    }
  });
}

}  // namespace

void conv2d(const Convolution& o, const Tensor& x, const Tensor& filter, const Tensor& bias,
            const Tensor& y, ThreadPool& threads) {
  if (winograd::wins(o, x.shape(), filter.shape()))
    return winograd::forward(o, x, filter, bias, y, threads);
  with_float_type(y.dtype(), [&]<class T>() { forward<T>(o, x, filter, bias, y, threads); });
}

void conv2d_data_gradient(const Convolution& o, const Tensor& dy, const Tensor& filter,
                          const Tensor& dx, bool accumulate, ThreadPool& threads) {
  if (winograd::wins(o, dx.shape(), filter.shape()))
    return winograd::data_gradient(o, dy, filter, dx, accumulate, threads);
  with_float_type(dx.dtype(),
                  [&]<class T>() { data_gradient<T>(o, dy, filter, dx, accumulate, threads); });
}

void conv2d_filter_gradient(const Convolution& o, const Tensor& x, const Tensor& dy,
                            const Tensor& dfilter, bool accumulate, ThreadPool& threads) {
  if (winograd::wins(o, x.shape(), dfilter.shape()))
    return winograd::filter_gradient(o, x, dy, dfilter, accumulate, threads);
  with_float_type(dfilter.dtype(),
                  [&]<class T>() { filter_gradient<T>(o, x, dy, dfilter, accumulate, threads); });
}

}  // namespace tandem

// Convolutions: by Winograd's algorithm if that is faster, otherwise as a product with windows of x
// that are packed tile by tile. docs/convolution.md explains both.

#include <algorithm>
#include <array>
#include <numeric>

#include "tensor/cpu/cpu_backend.h"
#include "tensor/cpu/kernels.h"
#include "tensor/cpu/panels.h"
#include "tensor/cpu/windows.h"
#include "tensor/cpu/winograd.h"

namespace tandem {
namespace {

using panels::Grid;
using panels::kColumns;
using panels::kDepth;
using panels::kRows;
using panels::pieces;
using panels::rounded_up;
using panels::scratch;
using panels::Start;

// c = windows · b, where b is packed in panels: all columns, the whole depth.
template <class T, class Row>
void multiply_windows(const Windows<T>& windows, const Tensor& b, std::int64_t columns, Start start,
                      const T* bias, const Row& c_row, ThreadPool& threads) {
  const std::int64_t depth = windows.columns();
  constexpr std::int64_t kTileRows = 8 * kRows;
  const Grid grid(windows.rows(), kTileRows, columns);
  threads.run(grid.tiles, [&](std::int64_t i) {
    const Grid::Tile tile = grid.tile(i);
    const Tensor panel = scratch(kRows * kDepth, b);
    for (std::int64_t k = 0; k < depth; k += kDepth) {
      const std::int64_t deep = std::min(kDepth, depth - k);
      const panels::Block<T> block{.rows = tile.rows,
                                   .columns = tile.columns,
                                   .depth = deep,
                                   .b = b.data<T>() + tile.column * depth + k * kColumns<T>,
                                   .b_pitch = depth * kColumns<T>,
                                   .start = k > 0 ? Start::sums : start,
                                   .bias = bias ? bias + tile.column : nullptr};
      panels::multiply_block(
          block, panel.data<T>(),
          [&](std::int64_t row, int count, T* to) {
            windows.pack_rows(tile.row + row, count, k, k + deep, to);
          },
          [&](std::int64_t row) { return c_row(tile.row + row) + tile.column; });
    }
  });
}

// The filters of one group, a matrix [k, taps · channels], as panels of B with k as the columns.
template <class T>
Tensor pack_filters(const Tensor& filter, std::int64_t first, std::int64_t count,
                    ThreadPool& threads) {
  constexpr int wide = kColumns<T>;
  const std::int64_t depth = filter.count() / filter.size(0);
  Tensor packed = scratch(rounded_up(count, wide) * depth, filter);
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

template <class T>
Windows<T> windows_of(const Convolution& o, const Tensor& x, const Shape& filter, const Shape& y,
                      std::int64_t group) {
  return Windows<T>(x, group * filter[3], filter[3], y[1], y[2], o.stride,
                    {filter[1], -o.padding.height, o.dilation},
                    {filter[2], -o.padding.width, o.dilation});
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

// In one direction: which taps of a filter read the pixels at `phase` after a multiple of the
// stride, and for which output pixels. Pixel stride·i + phase and tap r contribute to output i +
// (phase + padding - r·dilation) / stride, if that is an integer.
struct Phase {
  Phase(std::int64_t stride, std::int64_t padding, std::int64_t dilation, std::int64_t phase,
        std::int64_t size)
      : every(stride / std::gcd(stride, dilation)) {
    const auto distance = [&](std::int64_t r) { return phase + padding - r * dilation; };
    for (last = size - 1; last >= 0 && distance(last) % stride != 0;) --last;
    taps = {last < 0 ? 0 : last / every + 1, last < 0 ? 0 : distance(last) / stride,
            every * dilation / stride};
  }
  std::int64_t
      every;  // the distance between taps, from the last one on, so that the outputs ascend
  std::int64_t last;
  Taps taps;
};

// The transposed filters of one group, for some of their taps: the columns are the channels, the
// depth is taps · k.
template <class T>
Tensor pack_filters_transposed(const Tensor& filter, std::int64_t first, std::int64_t count,
                               const Phase& down, const Phase& right, ThreadPool& threads) {
  constexpr int wide = kColumns<T>;
  const std::int64_t channels = filter.size(3), taps = filter.size(1) * filter.size(2);
  const std::int64_t depth = down.taps.count * right.taps.count * count;
  Tensor packed = scratch(rounded_up(channels, wide) * depth, filter);
  threads.run(pieces(channels, wide), [&](std::int64_t panel) {
    T* to = packed.data<T>() + panel * wide * depth;
    const std::int64_t used = std::min<std::int64_t>(wide, channels - panel * wide);
    for (std::int64_t r = down.last; r >= 0; r -= down.every)
      for (std::int64_t s = right.last; s >= 0; s -= right.every)
        for (std::int64_t k = first; k < first + count; ++k, to += wide) {
          const T* from =
              filter.data<T>() + (k * taps + r * filter.size(2) + s) * channels + panel * wide;
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

// Pixels of dx that are `stride` apart are read by the same taps. They are the output of a
// convolution of dy with stride 1. There are as many such sets as the product of the strides.
template <class T>
void data_gradient(const Convolution& o, const Tensor& dy, const Tensor& filter, const Tensor& dx,
                   bool accumulate, ThreadPool& threads) {
  const std::int64_t filters = dy.size(3) / o.groups, channels = filter.size(3);
  const std::int64_t height = dx.size(1), width = dx.size(2), all = dx.size(3);
  for (std::int64_t g = 0; g < o.groups; ++g)
    for (std::int64_t top = 0; top < std::min(o.stride.height, height); ++top)
      for (std::int64_t left = 0; left < std::min(o.stride.width, width); ++left) {
        const Phase down(o.stride.height, o.padding.height, o.dilation, top, filter.size(1)),
            right(o.stride.width, o.padding.width, o.dilation, left, filter.size(2));
        const std::int64_t h = pieces(height - top, o.stride.height),
                           w = pieces(width - left, o.stride.width);
        T* out = dx.data<T>() + (top * width + left) * all + g * channels;
        const auto row = [=, stride = o.stride](std::int64_t i) {
          const std::int64_t n = i / (h * w), p = i % (h * w) / w, q = i % w;
          return out + ((n * height + p * stride.height) * width + q * stride.width) * all;
        };
        const Windows<T> windows(dy, g * filters, filters, h, w, 1, down.taps, right.taps);
        if (windows.columns() == 0) {  // no filter reads these pixels
          if (!accumulate)
            for (std::int64_t i = 0; i < windows.rows(); ++i) std::fill_n(row(i), channels, T{0});
          continue;
        }
        const Tensor b =
            pack_filters_transposed<T>(filter, g * filters, filters, down, right, threads);
        multiply_windows(windows, b, channels, accumulate ? Start::sums : Start::zero,
                         static_cast<const T*>(nullptr), row, threads);
      }
}

// dfilter[k, taps · channels] = dyᵀ · windows; the depth is the output pixels. If there are few
// tiles, the pixels are split into parts with separate sums, which are then added in order.
template <class T>
void filter_gradient(const Convolution& o, const Tensor& x, const Tensor& dy, const Tensor& dfilter,
                     std::int64_t group, bool accumulate, ThreadPool& threads) {
  constexpr std::int64_t kTileRows = 16 * kRows, kTileColumns = Windows<T>::kMostColumns;
  constexpr std::int64_t kTiles = 32, kLeastPixels = 2 * kDepth;
  const std::int64_t all = dy.size(3), filters = all / o.groups;
  const std::int64_t columns = dfilter.count() / all, pixels = dy.count() / all;
  const std::int64_t row_tiles = pieces(filters, kTileRows);
  const std::int64_t tiles = row_tiles * pieces(columns, kTileColumns);
  const std::int64_t parts =
      std::clamp<std::int64_t>(kTiles / tiles, 1, std::max<std::int64_t>(1, pixels / kLeastPixels));
  const std::int64_t part_pixels = rounded_up(pieces(pixels, parts), kDepth);

  const Windows<T> windows = windows_of<T>(o, x, dfilter.shape(), dy.shape(), group);
  const T* dys = dy.data<T>() + group * filters;
  T* result = dfilter.data<T>() + group * filters * columns;
  const std::int64_t count = filters * columns;
  const Tensor sums = parts > 1 ? scratch(parts * count, dfilter) : Tensor();

  threads.run(parts * tiles, [&](std::int64_t task) {
    const std::int64_t part = task / tiles, row0 = task % row_tiles * kTileRows;
    const std::int64_t column0 = task % tiles / row_tiles * kTileColumns;
    const std::int64_t wide = std::min(kTileColumns, columns - column0);
    T* out = (parts > 1 ? sums.data<T>() + part * count : result) + row0 * columns + column0;
    const Tensor panel = scratch(kRows * kDepth, dy);
    const Tensor b = scratch(rounded_up(wide, kColumns<T>) * kDepth, dy);
    const std::int64_t begin = part * part_pixels, end = std::min(pixels, begin + part_pixels);
    Start start = accumulate && parts == 1 ? Start::sums : Start::zero;
    std::int64_t pixel = begin;
    do {  // at least once: a part may be empty, and its sums are then zero
      const std::int64_t deep = std::clamp<std::int64_t>(end - pixel, 0, kDepth);
      windows.pack_columns(pixel, deep, column0, column0 + wide, b.data<T>(), deep * kColumns<T>);
      panels::multiply_block(
          panels::Block<T>{.rows = std::min(kTileRows, filters - row0),
                           .columns = wide,
                           .depth = deep,
                           .b = b.data<T>(),
                           .b_pitch = deep * kColumns<T>,
                           .start = start},
          panel.data<T>(),
          [&](std::int64_t row, int rows, T* to) {
            panels::copy_rows(dys + pixel * all + row0 + row, all, deep, rows, to);
          },
          [&](std::int64_t row) { return out + row * columns; });
      start = Start::sums;
      pixel += kDepth;
    } while (pixel < end);
  });
  if (parts == 1) return;
  constexpr std::int64_t kElements = 16 * 1024;
  threads.run_ranges(count, kElements, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t part = 0; part < parts; ++part) {
      const T* from = sums.data<T>() + part * count;
      if (part == 0 && !accumulate)
        std::copy(from + begin, from + end, result + begin);
      else
        kernels::add(result + begin, from + begin, result + begin, end - begin);
    }
  });
}

}  // namespace

void CpuBackend::conv2d(const Convolution& o, const Tensor& x, const Tensor& filter,
                        const Tensor& bias, bool relu_after, const Tensor& y) {
  if (winograd::wins(o, x.shape(), filter.shape()))
    winograd::forward(o, x, filter, bias, y, threads_);
  else
    with_float_type(y.dtype(), [&]<class T>() { forward<T>(o, x, filter, bias, y, threads_); });
  if (relu_after) relu(y, y);
}

void CpuBackend::conv2d_data_gradient(const Convolution& o, const Tensor& dy, const Tensor& filter,
                                      const Tensor& dx, bool accumulate) {
  if (winograd::wins(o, dx.shape(), filter.shape()))
    return winograd::data_gradient(o, dy, filter, dx, accumulate, threads_);
  with_float_type(dx.dtype(),
                  [&]<class T>() { data_gradient<T>(o, dy, filter, dx, accumulate, threads_); });
}

void CpuBackend::conv2d_filter_gradient(const Convolution& o, const Tensor& x, const Tensor& dy,
                                        const Tensor& dfilter, bool accumulate) {
  if (winograd::wins(o, x.shape(), dfilter.shape()))
    return winograd::filter_gradient(o, x, dy, dfilter, accumulate, threads_);
  with_float_type(dfilter.dtype(), [&]<class T>() {
    for (std::int64_t g = 0; g < o.groups; ++g)
      filter_gradient<T>(o, x, dy, dfilter, g, accumulate, threads_);
  });
}

}  // namespace tandem

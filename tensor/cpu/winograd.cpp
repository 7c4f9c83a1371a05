#include "tensor/cpu/winograd.h"

#include <algorithm>

#include "tensor/cpu/winograd_tiles.h"

namespace tandem::winograd {
namespace {

using panels::Grid;
using panels::kColumns;
using panels::kDepth;
using panels::kRows;
using panels::pieces;
using panels::rounded_up;
using panels::scratch;
using panels::Start;

// How the outputs are written: the sums alone, with a bias, or added to the old values.
template <class T>
struct Outputs {
  Images<T> y;
  Start start;
  const T* bias;
};

// Writes Aᵀ u A of one tile into the image, for channels [first, first + count). from(position)
// points to the tile's first sum.
template <int m, class T, class From>
void write_outputs(const Outputs<T>& out, const Tiles& tiles, std::int64_t tile, std::int64_t first,
                   std::int64_t count, T* nowhere, const From& from) {
  Images<T> y = out.y;
  y.data += first;
  const auto pixel =
      y.template square<m>(tiles.image(tile), tiles.top(tile), tiles.left(tile), nowhere);
  each_channel<T>(count, [&](auto kind, std::int64_t c) {
    using V = decltype(kind);
    const V bias = out.start == Start::bias ? load<V>(out.bias + first + c) : V{};
    both_ways<kPoints, m, V>([](const Six<V>& u) { return output_transform<m>(u); },
                             [&](int i, int j) { return load<V>(from(i * kPoints + j) + c); },
                             [&](int i, int j, V v) {
                               T* to = pixel[i * m + j] + c;
                               store(out.start == Start::sums ? load<V>(to) + v : v + bias, to);
                             });
  });
}

// G g Gᵀ of all filters, as panels of B for each of the 36 positions: [position][panel][depth]
// [kColumns]. In forward, the columns are filters and the depth is channels.
template <int r, class T>
Tensor transform_filters(const Tensor& filter, std::int64_t first, std::int64_t count,
                         ThreadPool& threads) {
  constexpr int wide = kColumns<T>;
  const std::int64_t channels = filter.size(3), panels = pieces(count, wide);
  Tensor packed = scratch(kPositions * panels * channels * wide, filter);
  threads.run(panels, [&](std::int64_t panel) {
    const int used = static_cast<int>(std::min<std::int64_t>(wide, count - panel * wide));
    // [filter][position][channel]
    const Tensor rows = scratch(wide * kPositions * channels, filter);
    for (int k = 0; k < used; ++k) {
      const T* g = filter.data<T>() + (first + panel * wide + k) * r * r * channels;
      T* to = rows.data<T>() + k * kPositions * channels;
      each_channel<T>(channels, [&](auto kind, std::int64_t c) {
        using V = decltype(kind);
        both_ways<r, kPoints, V>(
            [](const std::array<V, r>& v) { return filter_transform<r, T>(v); },
            [&](int i, int j) { return load<V>(g + (i * r + j) * channels + c); },
            [&](int i, int j, V v) { store(v, to + (i * kPoints + j) * channels + c); });
      });
    }
    for (int e = 0; e < kPositions; ++e) {
      T* to = packed.data<T>() + (e * panels + panel) * channels * wide;
      if (used < wide) std::fill_n(to, channels * wide, T{0});
      std::array<const T*, wide> from;
      for (int k = 0; k < used; ++k) from[k] = rows.data<T>() + (k * kPositions + e) * channels;
      panels::transpose(from.data(), used, channels, to, wide);
    }
  });
  return packed;
}

// The same for the gradient of the images, with filters rotated by 180°: the columns are channels
// and the depth is filters.
template <int r, class T>
Tensor transform_filters_turned(const Tensor& filter, std::int64_t first, std::int64_t count,
                                ThreadPool& threads) {
  constexpr int wide = kColumns<T>;
  const std::int64_t channels = filter.size(3), panels = pieces(channels, wide);
  const Tensor packed = scratch(kPositions * panels * count * wide, filter);
  constexpr std::int64_t kSome = 16;  // filters at a time
  threads.run_ranges(count, kSome, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t k = begin; k < end; ++k) {
      const T* g = filter.data<T>() + (first + k) * r * r * channels;
      const auto to = [&](int e, std::int64_t c) {
        return packed.data<T>() + ((e * panels + c / wide) * count + k) * wide + c % wide;
      };
      each_channel<T>(channels, [&](auto kind, std::int64_t c) {
        using V = decltype(kind);
        both_ways<r, kPoints, V>(
            [](const std::array<V, r>& v) { return filter_transform<r, T>(v); },
            [&](int i, int j) { return load<V>(g + ((r - 1 - i) * r + r - 1 - j) * channels + c); },
            [&](int i, int j, V v) { store(v, to(i * kPoints + j, c)); });
      });
      if (channels % wide)
        for (int e = 0; e < kPositions; ++e)
          std::fill_n(to(e, channels), wide - channels % wide, T{0});
    }
  });
  return packed;
}

// Convolves images with transformed filters. A task has some of the tiles and some of the columns.
// It transforms the tiles, multiplies, and transforms back, all within its cache.
template <int r, class T>
void convolve(const Images<T>& x, std::int64_t padding, const Tensor& filters, std::int64_t columns,
              const Outputs<T>& out, ThreadPool& threads) {
  constexpr int m = kPoints + 1 - r;
  constexpr std::int64_t kMostTiles = 4 * kRows;
  const Tiles tiles(x.n, out.y.h, out.y.w, m);
  const std::int64_t depth = x.channels, panels = pieces(columns, kColumns<T>);
  const std::int64_t blocks = std::max<std::int64_t>(1, pieces(tiles.count, kMostTiles));
  const Grid grid(tiles.count, rounded_up(pieces(tiles.count, blocks), kRows), columns);

  threads.run(grid.tiles, [&](std::int64_t task) {
    const Grid::Tile some = grid.tile(task);
    const std::int64_t first = some.row, count = some.rows, column = some.column,
                       wide = some.columns;
    const Tensor transformed = scratch(kPositions * count * depth, filters);
    const Tensor sums = scratch(kPositions * count * wide, filters);
    const Tensor panel = scratch(kRows * std::min(depth, kDepth), filters);
    const Tensor spare =
        scratch(std::max(depth, wide), filters);  // read in place of padding, written beyond edges

    T* zeros = spare.data<T>();
    std::fill_n(zeros, depth, T{0});
    for (std::int64_t t = 0; t < count; ++t)
      transform_tile(x, tiles, first + t, padding, zeros, [&](int e, std::int64_t c) {
        return transformed.data<T>() + (e * count + t) * depth + c;
      });
    for (std::int64_t k = 0; k < depth; k += kDepth) {
      const std::int64_t deep = std::min(kDepth, depth - k);
      for (int e = 0; e < kPositions; ++e) {
        const T* a = transformed.data<T>() + e * count * depth + k;
        panels::multiply_block(
            panels::Block<T>{.rows = count,
                             .columns = wide,
                             .depth = deep,
                             .b = filters.data<T>() +
                                  (e * panels + column / kColumns<T>)*depth * kColumns<T> +
                                  k * kColumns<T>,
                             .b_pitch = depth * kColumns<T>,
                             .start = k == 0 ? Start::zero : Start::sums},
            panel.data<T>(),
            [&](std::int64_t row, int rows, T* to) {
              std::array<const T*, kRows> from;
              for (int i = 0; i < rows; ++i) from[i] = a + (row + i) * depth;
              panels::transpose(from.data(), rows, deep, to, kRows);
            },
            [&](std::int64_t row) { return sums.data<T>() + (e * count + row) * wide; });
      }
    }
    for (std::int64_t t = 0; t < count; ++t)
      write_outputs<m>(out, tiles, first + t, column, wide, spare.data<T>(),
                       [&](int e) { return sums.data<T>() + (e * count + t) * wide; });
  });
}

}  // namespace

bool wins(const Convolution& o, const Shape& x, const Shape& filter) {
  const std::int64_t r = filter[1];
  if (x[0] == 0 || o.stride != 1 || o.dilation != 1 || filter[2] != r || (r != 3 && r != 5) ||
      !o.padding.square() || o.padding.height >= r)
    return false;
  const std::int64_t m = kPoints + 1 - r, h = o.rows(x[1], r), w = o.columns(x[2], r);
  const double channels = static_cast<double>(filter[3]),
               filters = static_cast<double>(filter[0] / o.groups);
  // The multiplications of each algorithm, and the transforms' cost in the same unit.
  const double tiles = static_cast<double>(pieces(h, m) * pieces(w, m));
  constexpr double kTransform = 10;
  return tiles * kPositions * (channels * filters + kTransform * (channels + filters)) <
         static_cast<double>(h * w * r * r) * channels * filters;
}

void forward(const Convolution& o, const Tensor& x, const Tensor& filter, const Tensor& bias,
             const Tensor& y, ThreadPool& threads) {
  const std::int64_t filters = filter.size(0) / o.groups;
  with_kind(filter.shape(), y.dtype(), [&]<int r, class T>() {
    for (std::int64_t g = 0; g < o.groups; ++g)
      convolve<r, T>(Images<T>(x, g, o.groups), o.padding.height,
                     transform_filters<r, T>(filter, g * filters, filters, threads), filters,
                     {Images<T>(y, g, o.groups), bias.defined() ? Start::bias : Start::zero,
                      bias.defined() ? bias.data<T>() + g * filters : nullptr},
                     threads);
  });
}

void data_gradient(const Convolution& o, const Tensor& dy, const Tensor& filter, const Tensor& dx,
                   bool accumulate, ThreadPool& threads) {
  const std::int64_t filters = filter.size(0) / o.groups;
  with_kind(filter.shape(), dx.dtype(), [&]<int r, class T>() {
    for (std::int64_t g = 0; g < o.groups; ++g)
      convolve<r, T>(
          Images<T>(dy, g, o.groups), r - 1 - o.padding.height,
          transform_filters_turned<r, T>(filter, g * filters, filters, threads), filter.size(3),
          {Images<T>(dx, g, o.groups), accumulate ? Start::sums : Start::zero, nullptr}, threads);
  });
}

}  // namespace tandem::winograd

#include <algorithm>

#include "tensor/cpu/winograd.h"
#include "tensor/cpu/winograd_tiles.h"

namespace tandem::winograd {
namespace {

using panels::kColumns;
using panels::kDepth;
using panels::kRows;
using panels::pieces;
using panels::rounded_up;
using panels::scratch;
using panels::Start;

// A dy Aᵀ of one tile of outputs.
template <int m, class T, class To>
void transform_outputs(const Images<T>& dy, const Tiles& tiles, std::int64_t tile, T* zeros,
                       const To& to) {
  const auto pixel =
      dy.template square<m>(tiles.image(tile), tiles.top(tile), tiles.left(tile), zeros);
  each_channel<T>(dy.channels, [&](auto kind, std::int64_t c) {
    using V = decltype(kind);
    both_ways<m, kPoints, V>(
        [](const std::array<V, m>& y) { return output_transform_transposed<m>(y); },
        [&](int i, int j) { return load<V>(pixel[i * m + j] + c); },
        [&](int i, int j, V v) { store(v, to(i * kPoints + j, c)); });
  });
}

// The gradient of the filters of one group, in three steps: transform all tiles of x and dy;
// multiply for each position, with the tiles as the depth; transform back. It processes as many
// tiles at a time as fit, transformed, into the last-level cache.
template <int r, class T>
void gradient_of_filters(const Images<T>& x, const Images<T>& dy, std::int64_t padding, T* dfilter,
                         bool accumulate, const Tensor& like, ThreadPool& threads) {
  constexpr int m = kPoints + 1 - r, wide = kColumns<T>;
  constexpr std::int64_t kElements = 2'000'000, kTaskRows = 8 * kRows, kSome = 8;
  const Tiles tiles(x.n, dy.h, dy.w, m);
  const std::int64_t channels = x.channels, filters = dy.channels;
  const std::int64_t panels = pieces(channels, wide), padded = panels * wide;
  const std::int64_t group = std::min(
      tiles.count,
      rounded_up(std::max<std::int64_t>(1, kElements / (kPositions * (padded + filters))), kSome));
  const Tensor b =
      scratch(kPositions * panels * group * wide, like);         // [position][panel][tile][wide]
  const Tensor a = scratch(kPositions * group * filters, like);  // [position][tile][filter]
  const Tensor sums = scratch(kPositions * filters * channels, like);
  const Tensor zeros = Tensor::zeros({std::max(channels, filters)}, like.dtype(), like.device());

  for (std::int64_t first = 0; first < tiles.count; first += group) {
    const std::int64_t count = std::min(group, tiles.count - first);
    threads.run_ranges(count, kSome, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t t = begin; t < end; ++t) {
        const auto to = [&](int e, std::int64_t c) {
          return b.data<T>() + ((e * panels + c / wide) * count + t) * wide + c % wide;
        };
        transform_tile(x, tiles, first + t, padding, zeros.data<T>(), to);
        if (channels % wide)
          for (int e = 0; e < kPositions; ++e)
            std::fill_n(to(e, channels), padded - channels, T{0});
        transform_outputs<m>(dy, tiles, first + t, zeros.data<T>(), [&](int e, std::int64_t k) {
          return a.data<T>() + (e * count + t) * filters + k;
        });
      }
    });
    // Long sums lose precision, the more the larger the batch. So 256 products are summed in
    // registers, these sums over a group of tiles, and those of the groups in `sums`.
    const bool in_parts = first > 0 && count > kDepth;
    const std::int64_t row_tasks = pieces(filters, kTaskRows);
    threads.run(kPositions * row_tasks, [&](std::int64_t task) {
      const std::int64_t e = task / row_tasks, row0 = task % row_tasks * kTaskRows;
      const std::int64_t rows = std::min(kTaskRows, filters - row0);
      const Tensor panel = scratch(kRows * kDepth, like);
      const Tensor part = in_parts ? scratch(rows * channels, like) : Tensor();
      T* total = sums.data<T>() + (e * filters + row0) * channels;
      T* own = in_parts ? part.data<T>() : total;
      for (std::int64_t k = 0; k < count; k += kDepth) {
        const std::int64_t deep = std::min(kDepth, count - k);
        const bool begins = k == 0 && (in_parts || first == 0);
        panels::multiply_block(
            panels::Block<T>{.rows = rows,
                             .columns = channels,
                             .depth = deep,
                             .b = b.data<T>() + (e * panels * count + k) * wide,
                             .b_pitch = count * wide,
                             .start = begins ? Start::zero : Start::sums},
            panel.data<T>(),
            [&](std::int64_t row, int some, T* to) {
              panels::copy_rows(a.data<T>() + (e * count + k) * filters + row0 + row, filters, deep,
                                some, to);
            },
            [&](std::int64_t row) { return own + row * channels; });
      }
      if (in_parts)
        for (std::int64_t i = 0; i < rows * channels; ++i) total[i] += own[i];
    });
  }
  threads.run_ranges(filters, 4, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t k = begin; k < end; ++k) {
      const T* from = sums.data<T>() + k * channels;
      T* to = dfilter + k * r * r * channels;
      each_channel<T>(channels, [&](auto kind, std::int64_t c) {
        using V = decltype(kind);
        both_ways<kPoints, r, V>(
            [](const Six<V>& u) { return filter_transform_transposed<r, T>(u); },
            [&](int i, int j) {
              return load<V>(from + (i * kPoints + j) * filters * channels + c);
            },
            [&](int i, int j, V v) {
              T* at = to + (i * r + j) * channels + c;
              store(accumulate ? load<V>(at) + v : v, at);
            });
      });
    }
  });
}

}  // namespace

void filter_gradient(const Convolution& o, const Tensor& x, const Tensor& dy, const Tensor& dfilter,
                     bool accumulate, ThreadPool& threads) {
  with_kind(dfilter.shape(), dfilter.dtype(), [&]<int r, class T>() {
    for (std::int64_t g = 0; g < o.groups; ++g)
      gradient_of_filters<r, T>(
          Images<T>(x, g, o.groups), Images<T>(dy, g, o.groups), o.padding.height,
          dfilter.data<T>() + g * (dfilter.count() / o.groups), accumulate, dfilter, threads);
  });
}

}  // namespace tandem::winograd

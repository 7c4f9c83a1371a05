#include "tensor/cpu/winograd.h"

#include <algorithm>

#include "tensor/cpu/panels.h"
#include "tensor/cpu/winograd_transforms.h"

namespace tandem::winograd {
namespace {

using panels::kColumns;
using panels::kDepth;
using panels::kRows;
using panels::pieces;
using panels::rounded_up;
using panels::Start;

// Calls f(V{}, channel) for all channels, by vectors as long as they fit, then one by one.
template <class T, class F>
[[gnu::always_inline]] inline void each_channel(std::int64_t channels, F&& f) {
  std::int64_t c = 0;
  for (; c + kLanes<T> <= channels; c += kLanes<T>) f(Vector<T>{}, c);
  for (; c < channels; ++c) f(T{}, c);
}
// Some channels of images [n, h, w, c].
template <class T>
struct Images {
  T* data;  // the first of the channels
  std::int64_t n, h, w, pitch, channels;

  Images(const Tensor& x, std::int64_t group, std::int64_t groups)
      : data(x.data<T>() + group * (x.size(3) / groups)),
        n(x.size(0)),
        h(x.size(1)),
        w(x.size(2)),
        pitch(x.size(3)),
        channels(x.size(3) / groups) {}

  T* pixel(std::int64_t image, std::int64_t y, std::int64_t x) const {
    return data + ((image * h + y) * w + x) * pitch;
  }

  // The pixels of a square whose corner is (top, left), row by row; `outside` for those that do not
  // exist.
  template <int size>
  std::array<T*, size * size> square(std::int64_t image, std::int64_t top, std::int64_t left,
                                     T* outside) const {
    std::array<T*, size * size> pixels;
    T* corner = pixel(image, top, left);
    for (int i = 0; i < size; ++i)
      for (int j = 0; j < size; ++j) {
        const bool inside = top + i >= 0 && top + i < h && left + j >= 0 && left + j < w;
        pixels[i * size + j] = inside ? corner + (i * w + j) * pitch : outside;
      }
    return pixels;
  }
};

// How the m × m outputs of each tile cover images of h × w.
struct Tiles {
  Tiles(std::int64_t images, std::int64_t h, std::int64_t w, int outputs)
      : m(outputs), down(pieces(h, m)), right(pieces(w, m)), count(images * down * right) {}

  std::int64_t image(std::int64_t tile) const { return tile / (down * right); }
  std::int64_t top(std::int64_t tile) const { return tile / right % down * m; }
  std::int64_t left(std::int64_t tile) const { return tile % right * m; }

  std::int64_t m, down, right, count;
};

// Bᵀ d B of one tile, whose corner lies `padding` above and left of its outputs. to(position, c) is
// where the channel goes.
template <class T, class To>
void transform_tile(const Images<T>& x, const Tiles& tiles, std::int64_t tile, std::int64_t padding,
                    T* zeros, const To& to) {
  const auto pixel = x.template square<kPoints>(tiles.image(tile), tiles.top(tile) - padding,
                                                tiles.left(tile) - padding, zeros);
  each_channel<T>(x.channels, [&](auto kind, std::int64_t c) {
    using V = decltype(kind);
    both_ways<kPoints, kPoints, V>(
        [](const Six<V>& d) { return tile_transform(d); },
        [&](int i, int j) { return load<V>(pixel[i * kPoints + j] + c); },
        [&](int i, int j, V v) { store(v, to(i * kPoints + j, c)); });
  });
}

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

// What the outputs become: the sums alone, with a bias, or added to what is there.
template <class T>
struct Outputs {
  Images<T> y;
  Start start;
  const T* bias;
};

// Aᵀ u A of one tile into the image, for channels [first, first + count). from(position) is the
// tile's first sum.
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
// [kColumns]. Forward, the columns are filters and the depth are channels.
template <int r, class T>
Tensor transform_filters(const Tensor& filter, std::int64_t first, std::int64_t count,
                         ThreadPool& threads) {
  constexpr int wide = kColumns<T>;
  const std::int64_t channels = filter.size(3), panels = pieces(count, wide);
  Tensor packed =
      Tensor::empty({kPositions * panels * channels * wide}, filter.dtype(), filter.device());
  threads.run(panels, [&](std::int64_t panel) {
    const int used = static_cast<int>(std::min<std::int64_t>(wide, count - panel * wide));
    const Tensor rows = Tensor::empty({wide * kPositions * channels}, filter.dtype(),
                                      filter.device());  // [filter][position][channel]
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

// The same for the gradient of the images: filters turned by 180°; the columns are channels and the
// depth are filters.
template <int r, class T>
Tensor transform_filters_turned(const Tensor& filter, std::int64_t first, std::int64_t count,
                                ThreadPool& threads) {
  constexpr int wide = kColumns<T>;
  const std::int64_t channels = filter.size(3), panels = pieces(channels, wide);
  const Tensor packed =
      Tensor::empty({kPositions * panels * count * wide}, filter.dtype(), filter.device());
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

// Images convolved with transformed filters. A task is some tiles and some of the columns: it
// transforms the tiles, multiplies, and transforms back, all within its cache.
template <int r, class T>
void convolve(const Images<T>& x, std::int64_t padding, const Tensor& filters, std::int64_t columns,
              const Outputs<T>& out, ThreadPool& threads) {
  constexpr int m = kPoints + 1 - r;
  constexpr std::int64_t kMostTiles = 4 * kRows, kFewTasks = 32, kMinColumns = 64;
  const Tiles tiles(x.n, out.y.h, out.y.w, m);
  const std::int64_t depth = x.channels, panels = pieces(columns, kColumns<T>);
  const std::int64_t blocks = pieces(tiles.count, kMostTiles);
  const std::int64_t some =
      rounded_up(pieces(tiles.count, std::max<std::int64_t>(1, blocks)), kRows);
  const std::int64_t wanted = pieces(kFewTasks, std::max<std::int64_t>(1, blocks));
  const std::int64_t task_columns = rounded_up(pieces(columns, wanted), kMinColumns);
  const std::int64_t column_tasks = pieces(columns, task_columns);

  threads.run(blocks * column_tasks, [&](std::int64_t task) {
    const std::int64_t first = task / column_tasks * some;
    const std::int64_t count = std::min(some, tiles.count - first);
    const std::int64_t column = task % column_tasks * task_columns;
    const std::int64_t wide = std::min(task_columns, columns - column);
    const auto scratch = [&](std::int64_t n) {
      return Tensor::empty({n}, filters.dtype(), filters.device());
    };
    const Tensor transformed = scratch(kPositions * count * depth);
    const Tensor sums = scratch(kPositions * count * wide);
    const Tensor panel = scratch(kRows * std::min(depth, kDepth));
    const Tensor spare = scratch(std::max(depth, wide));  // padding reads it, or edges write it

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

// The gradient of the filters of one group, in three steps: transform all tiles of x and dy; for
// each position multiply, the tiles being the depth; transform back. So many tiles at a time that
// their transforms fit in the last-level cache.
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
  const auto scratch = [&](std::int64_t n) {
    return Tensor::empty({n}, like.dtype(), like.device());
  };
  const Tensor b = scratch(kPositions * panels * group * wide);  // [position][panel][tile][wide]
  const Tensor a = scratch(kPositions * group * filters);        // [position][tile][filter]
  const Tensor sums = scratch(kPositions * filters * channels);
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
    const std::int64_t row_tasks = pieces(filters, kTaskRows);
    threads.run(kPositions * row_tasks, [&](std::int64_t task) {
      const std::int64_t e = task / row_tasks, row0 = task % row_tasks * kTaskRows;
      const Tensor panel = scratch(kRows * kDepth);
      for (std::int64_t k = 0; k < count; k += kDepth) {
        const std::int64_t deep = std::min(kDepth, count - k);
        panels::multiply_block(
            panels::Block<T>{.rows = std::min(kTaskRows, filters - row0),
                             .columns = channels,
                             .depth = deep,
                             .b = b.data<T>() + (e * panels * count + k) * wide,
                             .b_pitch = count * wide,
                             .start = first + k == 0 ? Start::zero : Start::sums},
            panel.data<T>(),
            [&](std::int64_t row, int rows, T* to) {
              panels::copy_rows(a.data<T>() + (e * count + k) * filters + row0 + row, filters, deep,
                                rows, to);
            },
            [&](std::int64_t row) {
              return sums.data<T>() + (e * filters + row0 + row) * channels;
            });
      }
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

// f<r, T>() for the filter's size and the dtype.
template <class F>
void with_kind(const Shape& filter, Dtype dtype, F&& f) {
  with_float_type(dtype, [&]<class T>() {
    if (filter[1] == 3)
      f.template operator()<3, T>();
    else
      f.template operator()<5, T>();
  });
}

}  // namespace

bool wins(const Convolution& o, const Shape& x, const Shape& filter) {
  const std::int64_t r = filter[1];
  if (x[0] == 0 || o.stride != 1 || o.dilation != 1 || filter[2] != r || (r != 3 && r != 5) ||
      o.padding >= r)
    return false;
  const std::int64_t m = kPoints + 1 - r, h = o.positions(x[1], r), w = o.positions(x[2], r);
  const double channels = static_cast<double>(filter[3]),
               filters = static_cast<double>(filter[0] / o.groups);
  // Multiplications of each way, and what the transforms cost in the same unit.
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
      convolve<r, T>(Images<T>(x, g, o.groups), o.padding,
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
          Images<T>(dy, g, o.groups), r - 1 - o.padding,
          transform_filters_turned<r, T>(filter, g * filters, filters, threads), filter.size(3),
          {Images<T>(dx, g, o.groups), accumulate ? Start::sums : Start::zero, nullptr}, threads);
  });
}

void filter_gradient(const Convolution& o, const Tensor& x, const Tensor& dy, const Tensor& dfilter,
                     bool accumulate, ThreadPool& threads) {
  with_kind(dfilter.shape(), dfilter.dtype(), [&]<int r, class T>() {
    for (std::int64_t g = 0; g < o.groups; ++g)
      gradient_of_filters<r, T>(Images<T>(x, g, o.groups), Images<T>(dy, g, o.groups), o.padding,
                                dfilter.data<T>() + g * (dfilter.count() / o.groups), accumulate,
                                dfilter, threads);
  });
}

}  // namespace tandem::winograd

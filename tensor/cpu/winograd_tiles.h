// How forward and backward of winograd.h walk over images: tile by tile, some channels at a time.
#pragma once

#include <array>
#include <cstdint>

#include "tensor/cpu/panels.h"
#include "tensor/cpu/winograd_transforms.h"
#include "tensor/tensor.h"

namespace tandem::winograd {

// Calls f(V{}, channel) for all channels: as vectors while they fit, then one by one.
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

  // The pixels of a square with its corner at (top, left), row by row; `outside` for pixels outside
  // the image.
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
      : m(outputs),
        down(panels::pieces(h, m)),
        right(panels::pieces(w, m)),
        count(images * down * right) {}

  std::int64_t image(std::int64_t tile) const { return tile / (down * right); }
  std::int64_t top(std::int64_t tile) const { return tile / right % down * m; }
  std::int64_t left(std::int64_t tile) const { return tile % right * m; }

  std::int64_t m, down, right, count;
};

// Bᵀ d B of one tile, whose corner lies `padding` above and left of its outputs. to(position, c) is
// the destination.
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

}  // namespace tandem::winograd

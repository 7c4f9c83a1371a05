#include <algorithm>
#include <array>

#include "tensor/cpu/cpu_backend.h"
#include "tensor/cpu/pooling.h"
#include "tensor/cpu/simd.h"

namespace tandem {
namespace {

// The integer of T's size: the result of comparing vectors of T.
template <class T>
using Place = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;

// The part of a window that lies inside the image: its first pixel, its rows and columns, and its
// position in the window.
template <class T>
struct Patch {
  const T* x;
  std::int64_t row_stride, channels;
  PoolWindow rows, columns;
  std::int64_t window;
};

// The maxima of kVectors·lanes(V) channels and their places, in registers for the whole window.
template <class V, class P, int kVectors, class T>
void max_of_patch(const Patch<T>& patch, std::int64_t channel, T* y, Place<T>* places) {
  constexpr std::int64_t kStep = sizeof(V) / sizeof(T);
  V best[kVectors];
  P place[kVectors];
  const auto first = static_cast<Place<T>>(patch.rows.offset * patch.window + patch.columns.offset);
  for (int i = 0; i < kVectors; ++i) {
    best[i] = load<V>(patch.x + channel + i * kStep);
    place[i] = P{} + first;
  }
  const std::int64_t height = patch.rows.end - patch.rows.begin,
                     width = patch.columns.end - patch.columns.begin;
  for (std::int64_t r = 0; r < height; ++r) {
    const T* x = patch.x + r * patch.row_stride + channel;
    P here = P{} + (first + static_cast<Place<T>>(r * patch.window));
    for (std::int64_t s = 0; s < width; ++s, x += patch.channels, here = here + 1)
      for (int i = 0; i < kVectors; ++i) {
        const V value = load<V>(x + i * kStep);
        const auto better = (value > best[i]) | (value != value);
        best[i] = better ? value : best[i];
        place[i] = better ? here : place[i];
      }
  }
  for (int i = 0; i < kVectors; ++i) {
    store(best[i], y + i * kStep);
    store(place[i], places + i * kStep);
  }
}

template <class T>
void max_of_patch(const Patch<T>& patch, T* y, std::uint8_t* winners) {
  using V = Vector<T>;
  using P = Vector<Place<T>>;
  constexpr std::int64_t kChunk = 256;
  Place<T>
      places[kChunk];  // converted to bytes later, in one long loop that compilers vectorise well
  for (std::int64_t first = 0; first < patch.channels; first += kChunk) {
    const std::int64_t count = std::min(kChunk, patch.channels - first);
    std::int64_t c = 0;
    for (; c + 4 * kLanes<T> <= count; c += 4 * kLanes<T>)
      max_of_patch<V, P, 4>(patch, first + c, y + first + c, places + c);
    for (; c + kLanes<T> <= count; c += kLanes<T>)
      max_of_patch<V, P, 1>(patch, first + c, y + first + c, places + c);
    for (; c < count; ++c)
      max_of_patch<T, Place<T>, 1>(patch, first + c, y + first + c, places + c);
    for (c = 0; c < count; ++c) winners[first + c] = static_cast<std::uint8_t>(places[c]);
  }
}

}  // namespace

void CpuBackend::max_pool(const Pool& pool, const Tensor& x, const Tensor& y,
                          const Tensor& winners) {
  const std::int64_t h = x.size(1), w = x.size(2), c = x.size(3), p = y.size(1), q = y.size(2);
  const std::int64_t grain = std::max<std::int64_t>(1, 8 * 1024 / std::max<std::int64_t>(1, q * c));
  with_float_type(x.dtype(), [&]<class T>() {
    threads_.run_ranges(y.size(0) * p, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        const PoolWindow rows(pool, row % p, h);
        const T* image_row = x.data<T>() + (row / p * h + rows.begin) * w * c;
        for (std::int64_t column = 0; column < q; ++column) {
          const PoolWindow columns(pool, column, w);
          const std::int64_t out = (row * q + column) * c;
          max_of_patch(
              Patch<T>{image_row + columns.begin * c, w * c, c, rows, columns, pool.window},
              y.data<T>() + out, winners.data<std::uint8_t>() + out);
        }
      }
    });
  });
}

// dx[the winner of y[i]] += dy[i], image by image, in the order of y. The alternative, to add up
// for every pixel the windows it has won, reads dy and the winners once per pixel of the window. It
// is slower, even with vectors.
void CpuBackend::max_pool_gradient(const Pool& pool, const Tensor& winners, const Tensor& dy,
                                   const Tensor& dx, bool accumulate) {
  const std::int64_t h = dx.size(1), w = dx.size(2), c = dx.size(3), p = dy.size(1), q = dy.size(2);
  // The offset of each place in the window from the window's first pixel, in elements.
  std::array<std::int64_t, 256> offsets{};
  for (std::int64_t i = 0; i < pool.window * pool.window; ++i)
    offsets[static_cast<std::size_t>(i)] = (i / pool.window * w + i % pool.window) * c;

  with_float_type(dy.dtype(), [&]<class T>() {
    threads_.run(dx.size(0), [&](std::int64_t n) {
      T* image = dx.data<T>() + n * h * w * c;
      std::int64_t ready =
          accumulate ? h : 0;  // rows zeroed so far; each is zeroed shortly before it is needed
      const auto make_ready = [&](std::int64_t rows) {
        if (rows <= ready) return;
        std::fill(image + ready * w * c, image + rows * w * c, T{0});
        ready = rows;
      };
      for (std::int64_t row = 0; row < p; ++row) {
        make_ready(PoolWindow(pool, row, h).end);
        for (std::int64_t column = 0; column < q; ++column) {
          const std::int64_t from = ((n * p + row) * q + column) * c;
          const T* __restrict g = dy.data<T>() + from;
          const std::uint8_t* __restrict winner = winners.data<std::uint8_t>() + from;
          // May lie in the padding before the image, but the winners do not.
          const std::int64_t start =
              ((row * pool.stride - pool.padding) * w + column * pool.stride - pool.padding) * c;
          for (std::int64_t i = 0; i < c; ++i) image[start + i + offsets[winner[i]]] += g[i];
        }
      }
      make_ready(h);
    });
  });
}

}  // namespace tandem

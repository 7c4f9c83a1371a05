#include "data/resize.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"

namespace tandem {
namespace {

constexpr std::int64_t kChannels = 3;
constexpr int kBits = 22;  // fractional bits of a weight: 255 · 2^22 fits into 31 bits
constexpr std::int32_t kHalf = 1 << (kBits - 1);

// The weights of a row's (or column's) pixels in the scaled one.
struct Taps {
  struct Pixel {
    std::int64_t first, count;
    std::size_t weights;  // index of its first weight
  };
  std::vector<Pixel> pixels;
  std::vector<std::int32_t> weights;
  std::vector<double> exact;

  // For pixels `first` … first+count-1 of `to`, when `from` pixels are scaled to `to`.
  void plan(std::int64_t from, std::int64_t to, std::int64_t first, std::int64_t count) {
    pixels.clear();
    weights.clear();
    const double scale = static_cast<double>(from) / static_cast<double>(to);
    const double reach = std::max(1.0, scale);
    for (std::int64_t i = first; i < first + count; ++i) {
      const double centre = (static_cast<double>(i) + 0.5) * scale;
      const auto begin = static_cast<std::int64_t>(std::max(0.0, centre - reach + 0.5));
      const auto end = std::min(from, static_cast<std::int64_t>(centre + reach + 0.5));
      exact.clear();
      double sum = 0;
      for (std::int64_t k = begin; k < end; ++k) {
        const double distance = std::abs(static_cast<double>(k) + 0.5 - centre) / reach;
        exact.push_back(std::max(0.0, 1 - distance));
        sum += exact.back();
      }
      pixels.push_back({begin, end - begin, weights.size()});
      for (const double weight : exact)
        weights.push_back(static_cast<std::int32_t>(weight / sum * (1 << kBits) + 0.5));
    }
  }
};

std::uint8_t rounded(std::int32_t sum) {
  return static_cast<std::uint8_t>(std::clamp(sum >> kBits, 0, 255));
}

// Memory that a thread reuses for the next image.
struct Scratch {
  Taps across, down;
  std::vector<std::uint8_t> rows;
  std::vector<std::int32_t> sums;
};

void scale_row(const std::uint8_t* in, const Taps& taps, std::uint8_t* out) {
  for (const Taps::Pixel& pixel : taps.pixels) {
    const std::uint8_t* from = in + pixel.first * kChannels;
    const std::int32_t* weight = taps.weights.data() + pixel.weights;
    std::int32_t red = kHalf, green = kHalf, blue = kHalf;
    for (std::int64_t k = 0; k < pixel.count; ++k, from += kChannels) {
      red += weight[k] * from[0];
      green += weight[k] * from[1];
      blue += weight[k] * from[2];
    }
    *out++ = rounded(red);
    *out++ = rounded(green);
    *out++ = rounded(blue);
  }
}

}  // namespace

ImageView ImageView::crop(std::int64_t top, std::int64_t left, std::int64_t rows,
                          std::int64_t columns) const {
  require(top >= 0 && left >= 0 && rows >= 1 && columns >= 1 && top + rows <= height &&
              left + columns <= width,
          "{}x{} pixels at ({}, {}) are not inside an image of {}x{}", rows, columns, top, left,
          height, width);
  return {pixels + top * stride + left * kChannels, rows, columns, stride};
}

void resize(const ImageView& view, std::int64_t height, std::int64_t width, const Window& window,
            std::span<std::uint8_t> out) {
  require(window.top >= 0 && window.left >= 0 && window.top + window.height <= height &&
              window.left + window.width <= width &&
              std::ssize(out) == window.height * window.width * kChannels,
          "{} bytes do not take {}x{} pixels at ({}, {}) of an image of {}x{}", out.size(),
          window.height, window.width, window.top, window.left, height, width);
  thread_local Scratch scratch;
  auto& [across, down, rows, sums] = scratch;
  across.plan(view.width, width, window.left, window.width);
  down.plan(view.height, height, window.top, window.height);

  // Scales all needed rows first, then the columns of the result.
  const auto row = static_cast<std::size_t>(window.width * kChannels);
  const std::int64_t first = down.pixels.front().first;
  const std::int64_t end = down.pixels.back().first + down.pixels.back().count;
  rows.resize(static_cast<std::size_t>(end - first) * row);
  for (std::int64_t y = first; y < end; ++y)
    scale_row(view.pixels + y * view.stride, across,
              rows.data() + static_cast<std::size_t>(y - first) * row);

  sums.resize(row);
  for (std::size_t y = 0; y < down.pixels.size(); ++y) {
    const Taps::Pixel& pixel = down.pixels[y];
    std::ranges::fill(sums, kHalf);
    for (std::int64_t k = 0; k < pixel.count; ++k) {
      const std::int32_t weight = down.weights[pixel.weights + static_cast<std::size_t>(k)];
      const std::uint8_t* from =
          rows.data() + static_cast<std::size_t>(pixel.first + k - first) * row;
      for (std::size_t x = 0; x < row; ++x) sums[x] += weight * from[x];
    }
    for (std::size_t x = 0; x < row; ++x) out[y * row + x] = rounded(sums[x]);
  }
}

void take_middle(const ImageView& image, std::int64_t size, std::int64_t short_side,
                 std::span<std::uint8_t> out) {
  const std::int64_t side = std::min(image.height, image.width);
  const std::int64_t height = image.height * short_side / side;
  const std::int64_t width = image.width * short_side / side;
  const auto half = [](std::int64_t n) {  // rounds halves to even, as torchvision does
    return static_cast<std::int64_t>(std::nearbyint(static_cast<double>(n) / 2));
  };
  resize(image, height, width, {half(height - size), half(width - size), size, size}, out);
}

}  // namespace tandem

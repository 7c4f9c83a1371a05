#include "data/augment.h"

#include <algorithm>
#include <vector>

namespace tandem {
namespace {

// Shifts the image by (down, right) pixels. New pixels are black.
void shift(std::span<std::uint8_t> pixels, const Shape& shape, std::int64_t down,
           std::int64_t right) {
  thread_local std::vector<std::uint8_t> before;
  before.assign(pixels.begin(), pixels.end());
  const std::int64_t height = shape[0], width = shape[1], channels = shape[2];
  const std::int64_t kept = std::max<std::int64_t>(0, width - std::abs(right)) * channels;
  const std::int64_t from = std::max<std::int64_t>(0, -right) * channels;
  const std::int64_t to = std::max<std::int64_t>(0, right) * channels;
  std::ranges::fill(pixels, std::uint8_t{0});
  for (std::int64_t y = std::max<std::int64_t>(0, down); y < std::min(height, height + down); ++y)
    std::copy_n(before.data() + (y - down) * width * channels + from, kept,
                pixels.data() + y * width * channels + to);
}

}  // namespace

void flip_horizontally(std::span<std::uint8_t> pixels, const Shape& shape) {
  const std::int64_t width = shape[1], channels = shape[2];
  for (std::int64_t y = 0; y < shape[0]; ++y) {
    std::uint8_t* left = pixels.data() + y * width * channels;
    std::uint8_t* right = left + (width - 1) * channels;
    for (; left < right; left += channels, right -= channels)
      std::swap_ranges(left, left + channels, right);
  }
}

Augment pad_crop_flip(std::int64_t pad) {
  return [pad](std::span<std::uint8_t> pixels, const Shape& shape, Random& random) {
    const auto places = static_cast<std::uint64_t>(2 * pad + 1);
    const std::int64_t down = static_cast<std::int64_t>(random.below(places)) - pad;
    const std::int64_t right = static_cast<std::int64_t>(random.below(places)) - pad;
    if (down != 0 || right != 0) shift(pixels, shape, down, right);
    if (random.below(2) == 1) flip_horizontally(pixels, shape);
  };
}

}  // namespace tandem

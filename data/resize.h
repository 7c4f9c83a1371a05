// Scaling images, with the bilinear filter that is widened where an image becomes smaller, so that
// every pixel counts (as in the Pillow library: other scaling costs accuracy in nets).
#pragma once

#include <cstdint>
#include <span>

namespace tandem {

// RGB pixels inside a larger image: row y begins at pixels + y · stride.
struct ImageView {
  const std::uint8_t* pixels;
  std::int64_t height, width;
  std::int64_t stride;  // bytes

  ImageView crop(std::int64_t top, std::int64_t left, std::int64_t rows,
                 std::int64_t columns) const;
};

// A part of an image.
struct Window {
  std::int64_t top, left, height, width;
};

// What `window` shows of the view scaled to height × width; only that is computed. `out` takes
// window.height · window.width · 3 bytes. Exact integer arithmetic: the same bits everywhere.
void resize(const ImageView& view, std::int64_t height, std::int64_t width, const Window& window,
            std::span<std::uint8_t> out);

}  // namespace tandem

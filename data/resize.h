// Scales images with a bilinear filter. The filter is widened where an image becomes smaller, so
// that every pixel counts, as in the Pillow library. (Other scaling costs a net accuracy.)
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

// The part `window` of the view scaled to height × width; nothing else is computed. `out` takes
// window.height · window.width · 3 bytes. Exact integer arithmetic: the same bits everywhere.
void resize(const ImageView& view, std::int64_t height, std::int64_t width, const Window& window,
            std::span<std::uint8_t> out);

// Scales the image so that its short side is `short_side`, and takes the middle, size × size.
void take_middle(const ImageView& image, std::int64_t size, std::int64_t short_side,
                 std::span<std::uint8_t> out);

}  // namespace tandem

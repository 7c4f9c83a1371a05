// JPEG and PNG files as pixels.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

namespace tandem {

// RGB, row by row, channels interleaved.
struct Image {
  struct Free {
    void operator()(std::uint8_t* memory) const;
  };
  std::int64_t height = 0, width = 0;
  std::unique_ptr<std::uint8_t[], Free> pixels;
};

// More than most cameras take. Decoding needs at most 32 bytes of memory per pixel, and usually 6.
inline constexpr std::int64_t kMaxPixels = 64'000'000;

// The contents determine the type, not the name. Grey and CMYK become RGB, transparency is dropped,
// 16 bits become 8. Exif orientation is ignored. Throws UserError with the path if the file cannot
// be read, is broken or has more than `max_pixels` pixels. May be called on several threads at
// once.
Image decode_image(const std::filesystem::path& path, std::int64_t max_pixels = kMaxPixels);

}  // namespace tandem

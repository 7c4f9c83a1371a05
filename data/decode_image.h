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

// The type is told by the contents, not by the name. Grey becomes RGB, transparency is dropped,
// 16 bits become 8. Throws UserError with the path for what cannot be read or is broken. May be
// called on several threads at once.
Image decode_image(const std::filesystem::path& path);

}  // namespace tandem

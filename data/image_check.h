// Checks of JPEG and PNG files before their pixels are decoded. stb_image trusts files: it accepts
// Huffman tables that overflow its own, uses tables that were never defined, and ignores checksums.
// So every file is first checked marker by marker or chunk by chunk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>

namespace tandem {

// Says what is wrong with the file, in the form "it is cut off".
struct BrokenImage : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct ImageHeader {
  std::int64_t height = 0, width = 0;
};

struct JpegHeader : ImageHeader {
  int components = 0;
  // Position of the colour transform in Adobe's marker; 0 if there is no such marker.
  std::size_t adobe_transform_at = 0;
};

bool is_jpeg(std::span<const std::uint8_t> file);
bool is_png(std::span<const std::uint8_t> file);

// Walks through all segments in the same way as stb_image, so that stb_image meets only checked
// ones. Sizes must fit, Huffman tables have at most 256 codes and exist when a scan uses them, and
// every component is in a scan. Throws BrokenImage.
JpegHeader check_jpeg(std::span<const std::uint8_t> file);

// Checks the sizes, checksums and names of all chunks. Throws BrokenImage.
ImageHeader check_png(std::span<const std::uint8_t> file);

}  // namespace tandem

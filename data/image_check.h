// What can be told about a JPEG or PNG file before its pixels are decoded. stb_image trusts files:
// it takes Huffman tables that overflow its own, uses tables that were never defined, and does not
// look at checksums. So every file is walked through, marker by marker or chunk by chunk, first.
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
  // Where Adobe's marker says how colours were transformed; 0: there is no such marker.
  std::size_t adobe_transform_at = 0;
};

bool is_jpeg(std::span<const std::uint8_t> file);
bool is_png(std::span<const std::uint8_t> file);

// Walks through all segments as stb_image does, so that it meets none that was not checked: sizes
// fit, Huffman tables have at most 256 codes and are there when a scan uses them, and every
// component is in a scan. Throws BrokenImage.
JpegHeader check_jpeg(std::span<const std::uint8_t> file);

// Checks the sizes, checksums and names of all chunks. Throws BrokenImage.
ImageHeader check_png(std::span<const std::uint8_t> file);

}  // namespace tandem

// Small JPEG and PNG files for tests.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tandem::test {

// A picture of the given size whose bytes are `value(y, x, channel)`.
std::vector<std::uint8_t> picture(std::int64_t height, std::int64_t width, std::int64_t channels,
                                  const std::function<int(int, int, int)>& value);
std::vector<std::uint8_t> random_picture(std::int64_t height, std::int64_t width,
                                         std::uint64_t seed);  // RGB

// By the name's ending; folders are made.
void write_image(const std::filesystem::path& path, std::span<const std::uint8_t> pixels,
                 std::int64_t height, std::int64_t width, std::int64_t channels = 3);

// The files of CIFAR-10 and CIFAR-100 with `count` random images each; classes below ten, so that
// they do for either set.
void write_cifar(const std::filesystem::path& folder, int count);

// Image files written byte by byte, for tests of files that no encoder writes.

std::string png_chunk(const std::string& name, const std::string& contents);  // with its checksum
std::string png_signature();

// A PNG file whose header promises what it likes. `rows` are compressed.
struct PngHeader {
  std::uint32_t width, height;
  int depth = 8;
  int colour_type = 2;  // 0: grey, 2: RGB, 3: palette, 6: RGB with transparency
  bool interlaced = false;
};
std::string png_file(const PngHeader& header, const std::string& rows);

std::string jpeg_segment(std::uint8_t marker, const std::string& contents);
// A Huffman table in which as many codes have 1, 2, … 16 bits as `counts` says.
std::string huffman_table(int kind, const std::string& counts, const std::string& values);

// A JPEG file of 8 x 8 pixels, all alike. `colours` are stored as they are.
struct FlatJpeg {
  std::vector<int> colours;
  std::optional<int> adobe = {};         // the colour transform in Adobe's marker
  std::string tables = huffman();        // the segments of Huffman tables
  std::size_t scanned = colours.size();  // only so many of the colours are in the scan
  static std::string huffman();
};
std::string jpeg_file(const FlatJpeg& image);

}  // namespace tandem::test

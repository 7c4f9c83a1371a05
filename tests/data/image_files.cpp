#include "tests/data/image_files.h"

#include <zlib.h>

#include "base/error.h"
#include "base/random.h"
#include "tests/support.h"

#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wall"
#pragma GCC diagnostic ignored "-Wextra"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wunused-function"
#include <stb/stb_image_write.h>
#pragma GCC diagnostic pop

namespace tandem::test {

std::vector<std::uint8_t> picture(std::int64_t height, std::int64_t width, std::int64_t channels,
                                  const std::function<int(int, int, int)>& value) {
  std::vector<std::uint8_t> pixels;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < channels; ++c)
        pixels.push_back(static_cast<std::uint8_t>(value(y, x, c)));
  return pixels;
}

std::vector<std::uint8_t> random_picture(std::int64_t height, std::int64_t width,
                                         std::uint64_t seed) {
  Random random(seed);
  return picture(height, width, 3,
                 [&](int, int, int) { return static_cast<int>(random.below(256)); });
}

void write_image(const std::filesystem::path& path, std::span<const std::uint8_t> pixels,
                 std::int64_t height, std::int64_t width, std::int64_t channels) {
  std::filesystem::create_directories(path.parent_path());
  const int h = static_cast<int>(height), w = static_cast<int>(width),
            n = static_cast<int>(channels);
  std::string end = path.extension().string();
  for (char& c : end) c = static_cast<char>(std::tolower(c));
  const int written = end == ".png" ? stbi_write_png(path.c_str(), w, h, n, pixels.data(), w * n)
                                    : stbi_write_jpg(path.c_str(), w, h, n, pixels.data(), 95);
  require(written != 0, "{} could not be written", path.string());
}

void write_cifar(const std::filesystem::path& folder, int count) {
  const auto records = [&](std::size_t label_bytes, std::uint64_t seed) {
    std::string bytes;
    for (int i = 0; i < count; ++i) {
      bytes += std::string(label_bytes, static_cast<char>(i % 10));
      const auto pixels = random_picture(32, 32, seed + static_cast<std::uint64_t>(i));
      bytes.append(pixels.begin(), pixels.end());
    }
    return bytes;
  };
  for (int i = 1; i <= 5; ++i)
    write_bytes(folder / ("data_batch_" + std::to_string(i) + ".bin"), records(1, 100 * i));
  write_bytes(folder / "test_batch.bin", records(1, 1000));
  write_bytes(folder / "train.bin", records(2, 1));
  write_bytes(folder / "test.bin", records(2, 2000));
}

namespace {

std::string big_endian(std::uint32_t value, int bytes) {
  std::string result;
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8)
    result += static_cast<char>(value >> shift);
  return result;
}

std::string characters(std::initializer_list<int> bytes) {
  std::string result;
  for (const int b : bytes) result += static_cast<char>(b);
  return result;
}

const Bytef* bytes_of(const std::string& s) { return reinterpret_cast<const Bytef*>(s.data()); }

}  // namespace

std::string png_signature() { return "\x89PNG\r\n\x1a\n"; }

std::string png_chunk(const std::string& name, const std::string& contents) {
  const std::string checked = name + contents;
  const auto sum = crc32(0, bytes_of(checked), static_cast<uInt>(checked.size()));
  return big_endian(static_cast<std::uint32_t>(contents.size()), 4) + checked +
         big_endian(static_cast<std::uint32_t>(sum), 4);
}

std::string png_file(const PngHeader& h, const std::string& rows) {
  uLongf size = compressBound(rows.size());
  std::string packed(size, '\0');
  require(
      compress(reinterpret_cast<Bytef*>(packed.data()), &size, bytes_of(rows), rows.size()) == Z_OK,
      "cannot compress");
  packed.resize(size);
  return png_signature() +
         png_chunk("IHDR", big_endian(h.width, 4) + big_endian(h.height, 4) +
                               characters({h.depth, h.colour_type, 0, 0, h.interlaced ? 1 : 0})) +
         png_chunk("IDAT", packed) + png_chunk("IEND", "");
}

std::string jpeg_segment(std::uint8_t marker, const std::string& contents) {
  return characters({0xff, marker}) +
         big_endian(static_cast<std::uint32_t>(contents.size() + 2), 2) + contents;
}

std::string huffman_table(int kind, const std::string& counts, const std::string& values) {
  std::string padded = counts;
  padded.resize(16, '\0');
  return jpeg_segment(0xc4, characters({kind << 4}) + padded + values);
}

std::string FlatJpeg::huffman() {
  // Differences of 0 to 8 bits, by codes of four bits; and one code for "no more of this block".
  return huffman_table(0, characters({0, 0, 0, 9}), characters({0, 1, 2, 3, 4, 5, 6, 7, 8})) +
         huffman_table(1, characters({1}), characters({0}));
}

std::string jpeg_file(const FlatJpeg& image) {
  std::string file = characters({0xff, 0xd8});
  if (image.adobe)
    file += jpeg_segment(0xee, "Adobe" + characters({0, 100, 0, 0, 0, 0, *image.adobe}));
  file += jpeg_segment(0xdb, characters({0}) + std::string(64, '\x08'));
  const int n = static_cast<int>(image.colours.size());
  std::string frame = characters({8, 0, 8, 0, 8, n});
  for (int i = 1; i <= n; ++i) frame += characters({i, 0x11, 0});
  file += jpeg_segment(0xc0, frame) + image.tables;

  std::string scan = characters({static_cast<int>(image.scanned)}), bits;
  const auto put = [&](int value, int count) {
    for (int b = count - 1; b >= 0; --b) bits += static_cast<char>('0' + (value >> b & 1));
  };
  for (std::size_t i = 0; i < image.scanned; ++i) {
    scan += characters({static_cast<int>(i) + 1, 0});
    const int difference = image.colours[i] - 128;
    int size = 0;
    while (std::abs(difference) >> size) ++size;
    put(size, 4);
    put(difference < 0 ? difference + (1 << size) - 1 : difference, size);
    put(0, 1);
  }
  file += jpeg_segment(0xda, scan + characters({0, 63, 0}));
  bits.resize((bits.size() + 7) / 8 * 8, '1');
  for (std::size_t at = 0; at < bits.size(); at += 8) {
    file += static_cast<char>(std::stoi(bits.substr(at, 8), nullptr, 2));
    if (file.back() == '\xff') file += '\0';
  }
  return file + characters({0xff, 0xd9});
}

}  // namespace tandem::test

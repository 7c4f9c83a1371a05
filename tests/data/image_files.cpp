#include "tests/data/image_files.h"

#include "base/error.h"
#include "base/random.h"

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

}  // namespace tandem::test

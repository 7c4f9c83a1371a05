#include "data/decode_image.h"

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <span>
#include <vector>

#include "data/regular_file.h"
#include "tensor/error.h"

// The one place where the library is compiled; its warnings are not ours.
#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_JPEG
#define STBI_ONLY_PNG
#define STBI_NO_STDIO
#define STBI_FAILURE_USERMSG
#if defined(__ARM_NEON)
#define STBI_NEON
#endif
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wall"
#pragma GCC diagnostic ignored "-Wextra"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wunused-function"
#include <stb/stb_image.h>
#pragma GCC diagnostic pop

namespace tandem {
namespace {

// More than any photograph has; a broken header may promise anything.
constexpr std::int64_t kMostPixels = std::int64_t{1} << 28;

// The whole file, in memory that the thread keeps for the next one.
std::span<const stbi_uc> contents(const std::filesystem::path& path) {
  thread_local std::vector<stbi_uc> bytes;
  const std::uint64_t size = regular_file_bytes(path);
  if (size > INT_MAX) throw UserError("{} is too large for an image", path.string());
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  const std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "rb"));
  if (!file) throw UserError("cannot open {}: {}", path.string(), std::strerror(errno));
  std::setvbuf(file.get(), nullptr, _IONBF, 0);
  bytes.resize(size);
  if (std::fread(bytes.data(), 1, size, file.get()) != size)
    throw UserError("cannot read {}", path.string());
  return bytes;
}

}  // namespace

void Image::Free::operator()(std::uint8_t* memory) const { stbi_image_free(memory); }

Image decode_image(const std::filesystem::path& path) {
  const auto bytes = contents(path);
  const auto complain = [&] {
    const char* why = stbi_failure_reason();
    throw UserError("{} is not a JPEG or PNG image that can be decoded: {}", path.string(),
                    bytes.empty() ? "it is empty"
                    : why         ? why
                                  : "it is broken");
  };
  const int size = static_cast<int>(bytes.size());
  int width = 0, height = 0, channels = 0;
  if (bytes.empty() || !stbi_info_from_memory(bytes.data(), size, &width, &height, &channels))
    complain();
  if (width < 1 || height < 1 || std::int64_t{width} * height > kMostPixels)
    throw UserError("{} is an image of {}x{} pixels, which cannot be used", path.string(), width,
                    height);
  Image image;
  image.pixels.reset(
      stbi_load_from_memory(bytes.data(), size, &width, &height, &channels, STBI_rgb));
  if (!image.pixels) complain();
  image.height = height;
  image.width = width;
  return image;
}

}  // namespace tandem

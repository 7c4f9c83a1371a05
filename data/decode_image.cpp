#include "data/decode_image.h"

#include <array>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "base/error.h"
#include "data/files.h"
#include "data/image_check.h"

namespace tandem {
namespace {

// The memory that stb_image may still allocate for the image that this thread decodes. A crafted
// file of a few kilobytes could expand to gigabytes; this limit stops it.
struct DecodingMemory {
  std::size_t left = 0;
  bool refused = false;
  std::size_t missing = 0;  // bytes that the system could not provide
};
thread_local DecodingMemory t_memory;

// Every block begins with its size.
constexpr std::size_t kSizeBytes = alignof(std::max_align_t);

std::size_t size_of(const void* piece) {
  std::size_t size;
  std::memcpy(&size, static_cast<const std::byte*>(piece) - kSizeBytes, sizeof size);
  return size;
}

// Like realloc.
void* reallocate(void* piece, std::size_t size) {
  const std::size_t before = piece ? size_of(piece) : 0;
  if (size > before && size - before > t_memory.left) {
    t_memory.refused = true;
    return nullptr;
  }
  void* begin = std::realloc(piece ? static_cast<std::byte*>(piece) - kSizeBytes : nullptr,
                             kSizeBytes + size);
  if (!begin) {
    t_memory.missing = size;
    return nullptr;
  }
  t_memory.left = t_memory.left + before - size;
  std::memcpy(begin, &size, sizeof size);
  return static_cast<std::byte*>(begin) + kSizeBytes;
}

// Also frees images that outlive their decoding: the next image begins with a new limit.
void give_back(void* piece) {
  if (!piece) return;
  t_memory.left += size_of(piece);
  std::free(static_cast<std::byte*>(piece) - kSizeBytes);
}

}  // namespace
}  // namespace tandem

// The only place where the library is compiled. Its warnings are disabled.
#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_JPEG
#define STBI_ONLY_PNG
#define STBI_NO_STDIO
#define STBI_FAILURE_USERMSG
#define STBI_MALLOC(size) tandem::reallocate(nullptr, size)
#define STBI_REALLOC(piece, size) tandem::reallocate(piece, size)
#define STBI_FREE(piece) tandem::give_back(piece)
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

// The whole file, in memory that the thread reuses for the next one.
std::vector<std::uint8_t>& contents(const std::filesystem::path& path) {
  thread_local std::vector<std::uint8_t> bytes;
  const std::uint64_t size = regular_file_bytes(path);
  if (size > INT_MAX / 2) throw UserError("{} is too large", path.string());
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  const std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "rb"));
  if (!file) throw UserError("cannot open {}: {}", path.string(), std::strerror(errno));
  std::setvbuf(file.get(), nullptr, _IONBF, 0);
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION  // of all fuzzers, by convention
  bytes = std::vector<std::uint8_t>();           // so that the sanitizer sees reads past the end
#endif
  bytes.resize(size);
  if (std::fread(bytes.data(), 1, size, file.get()) != size)
    throw UserError("cannot read {}", path.string());
  return bytes;
}

// More than any valid file needs. The worst case is an interlaced PNG of four 16-bit channels: 16
// bytes per pixel to inflate it (a power of two times the 8 that stb_image expects), 8 for the
// image and 4 for the longest pass. JPEG works in squares of up to 32 pixels.
std::size_t allowance(const ImageHeader& header, bool jpeg, std::size_t file_bytes) {
  constexpr std::size_t kBytesPerPixel = 32, kTables = 1 << 21;
  const std::size_t margin = jpeg ? 32 : 0;
  return kBytesPerPixel * (static_cast<std::size_t>(header.width) + margin) *
             (static_cast<std::size_t>(header.height) + margin) +
         2 * file_bytes + kTables;
}

// Four channels are cyan, magenta, yellow and black, all inverted. Adobe's marker says whether the
// first three are coded as luminance and chrominance; without the marker they are not. Pillow and
// libjpeg do the same. stb_image takes the fourth channel for transparency unless the marker exists
// and says 0 or 2.
void mark_cmyk(std::vector<std::uint8_t>& bytes, const JpegHeader& header) {
  constexpr std::array<std::uint8_t, 16> kMarker{0xff, 0xee, 0, 14, 'A', 'd', 'o', 'b',
                                                 'e',  0,    0, 0,  0,   0,   0,   0};
  if (header.adobe_transform_at == 0)
    bytes.insert(bytes.begin() + 2, kMarker.begin(), kMarker.end());
  else if (bytes[header.adobe_transform_at] != 0)
    bytes[header.adobe_transform_at] = 2;
}

Image decode(std::vector<std::uint8_t>& bytes, const std::string& name, std::int64_t max_pixels) {
  JpegHeader header;
  if (bytes.empty()) throw BrokenImage("it is empty");
  if (is_jpeg(bytes))
    header = check_jpeg(bytes);
  else if (is_png(bytes))
    static_cast<ImageHeader&>(header) = check_png(bytes);
  else
    throw BrokenImage("it does not begin like either of them");
  if (header.width < 1 || header.height < 1) throw BrokenImage("it has no pixels");
  if (header.width > max_pixels / header.height)
    throw UserError("{} has {}x{} pixels, more than the limit of {} (see --max-pixels)", name,
                    header.width, header.height, max_pixels);

  t_memory = {.left = allowance(header, header.components > 0, bytes.size())};
  int width = 0, height = 0;
  Image image;
  if (header.components == 4) mark_cmyk(bytes, header);
  image.pixels.reset(stbi_load_from_memory(bytes.data(), static_cast<int>(bytes.size()), &width,
                                           &height, nullptr, STBI_rgb));
  if (!image.pixels) {
    if (t_memory.missing > 0) throw OutOfMemory(t_memory.missing);
    const char* why = stbi_failure_reason();
    throw BrokenImage(t_memory.refused
                          ? fmt::format("decoding takes too much memory for {}x{} pixels",
                                        header.width, header.height)
                      : why ? why
                            : "it is broken");
  }
  image.height = height;
  image.width = width;
  return image;
}

}  // namespace

void Image::Free::operator()(std::uint8_t* memory) const { stbi_image_free(memory); }

Image decode_image(const std::filesystem::path& path, std::int64_t max_pixels) {
  auto& bytes = contents(path);
  try {
    return decode(bytes, path.string(), max_pixels);
  } catch (const BrokenImage& e) {
    throw UserError("{} is not a JPEG or PNG image that can be decoded: {}", path.string(),
                    e.what());
  }
}

}  // namespace tandem

#include <zlib.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "data/image_check.h"

namespace tandem {
namespace {

constexpr std::array<std::uint8_t, 8> kSignature{0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

std::uint32_t number_at(std::span<const std::uint8_t> bytes) {
  return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 |
         std::uint32_t{bytes[2]} << 8 | bytes[3];
}

}  // namespace

bool is_png(std::span<const std::uint8_t> file) {
  return file.size() >= kSignature.size() &&
         std::ranges::equal(file.first(kSignature.size()), kSignature);
}

ImageHeader check_png(std::span<const std::uint8_t> file) {
  ImageHeader header;
  bool first = true;
  // A chunk: the size of its contents, its name, the contents, a checksum of name and contents.
  for (auto rest = file.subspan(kSignature.size());; first = false) {
    if (rest.size() < 12 || number_at(rest) > rest.size() - 12) throw BrokenImage("it is cut off");
    const std::size_t size = number_at(rest);
    const auto checked = rest.subspan(4, 4 + size), contents = checked.subspan(4);
    const std::string_view name(reinterpret_cast<const char*>(checked.data()), 4);
    if (crc32_z(0, checked.data(), checked.size()) != number_at(rest.subspan(8 + size)))
      throw BrokenImage("one of its checksums is wrong");
    if (first) {
      if (name != "IHDR" || size != 13) throw BrokenImage("it does not begin with a PNG header");
      header = {.height = number_at(contents.subspan(4)), .width = number_at(contents)};
    }
    if (name == "IEND") return header;
    // A capital first letter marks a chunk that every reader must understand.
    const bool critical = (name[0] & 0x20) == 0;
    if (critical && name != "IHDR" && name != "PLTE" && name != "IDAT")
      throw BrokenImage("it has an unknown critical chunk");
    rest = rest.subspan(12 + size);
  }
}

}  // namespace tandem

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <string_view>

#include "data/image_check.h"

namespace tandem {
namespace {

// The second byte of a marker; the first is 0xff.
enum Marker : std::uint8_t {
  kSof0 = 0xc0,  // frame header: baseline,
  kSof1 = 0xc1,  // extended,
  kSof2 = 0xc2,  // progressive
  kDht = 0xc4,   // Huffman tables
  kRst0 = 0xd0,  // to 0xd7: restart within a scan
  kSoi = 0xd8,   // start of the image
  kEoi = 0xd9,   // end of the image
  kSos = 0xda,   // header of a scan
  kDqt = 0xdb,   // quantization tables
  kApp14 = 0xee,
};

using Bytes = std::span<const std::uint8_t>;

// Lossless, hierarchical or arithmetic-coded frames.
bool is_other_frame(std::uint8_t marker) {
  return marker > kSof2 && marker <= 0xcf && marker != kDht && marker != 0xc8 && marker != 0xcc;
}

struct Component {
  std::uint8_t id = 0, quantization_table = 0;
  bool scanned = false;  // a scan has the first bits of its lowest frequency
};

class Walk {
 public:
  explicit Walk(Bytes file) : file_(file) {}

  JpegHeader run() {
    at_ = 2;  // after the start of the image
    for (std::uint8_t marker = next_marker(); marker != kEoi; marker = next_marker()) {
      if (is_other_frame(marker)) throw BrokenImage("its kind of JPEG is not supported");
      const Bytes segment = take_segment();
      switch (marker) {
        case kSof0:
        case kSof1:
        case kSof2:
          take_frame(segment, marker == kSof2);
          break;
        case kDht:
          take_huffman_tables(segment);
          break;
        case kDqt:
          take_quantization_tables(segment);
          break;
        case kSos:
          take_scan(segment);
          skip_coded_data();
          break;
        case kApp14:
          take_adobe(segment);
          break;
        default:  // comments and application data; stb_image refuses the rest if it needs it
          break;
      }
    }
    if (header_.components == 0) throw BrokenImage("it ends before its image data");
    for (int i = 0; i < header_.components; ++i)
      if (!components_[static_cast<std::size_t>(i)].scanned)
        throw BrokenImage("it lacks the data of a colour");
    return header_;
  }

 private:
  static constexpr int kTables = 4;  // of each kind

  // stb_image skips other bytes before a marker until it has seen the frame header.
  std::uint8_t next_marker() {
    if (header_.components == 0)
      while (at_ < file_.size() && file_[at_] != 0xff) ++at_;
    if (at_ < file_.size() && file_[at_] != 0xff) throw BrokenImage("it lacks a marker");
    while (at_ < file_.size() && file_[at_] == 0xff) ++at_;
    if (at_ >= file_.size()) throw BrokenImage("it is cut off");
    return file_[at_++];
  }

  Bytes take_segment() {
    const std::size_t room = file_.size() - at_;
    const std::size_t size = room < 2 ? 0 : number_at(file_.subspan(at_));
    if (size > room || room < 2) throw BrokenImage("it is cut off");
    if (size < 2) throw BrokenImage("one of its segments has no size");
    const Bytes segment = file_.subspan(at_ + 2, size - 2);
    at_ += size;
    return segment;
  }

  static std::size_t number_at(Bytes bytes) { return std::size_t{bytes[0]} << 8 | bytes[1]; }

  void take_frame(Bytes s, bool progressive) {
    if (header_.components > 0) throw BrokenImage("it has two images in one");
    if (s.size() < 6 || s[5] < 1 || s[5] > components_.size() || s.size() != 6 + 3U * s[5])
      throw BrokenImage("its header is broken");
    progressive_ = progressive;
    header_.height = static_cast<std::int64_t>(number_at(s.subspan(1)));
    header_.width = static_cast<std::int64_t>(number_at(s.subspan(3)));
    header_.components = s[5];
    for (std::size_t i = 0; i < s[5]; ++i)
      components_[i] = {.id = s[6 + 3 * i], .quantization_table = s[8 + 3 * i]};
  }

  // A table: its kind and number, how many codes have 1, 2, … 16 bits, and the value of each.
  void take_huffman_tables(Bytes s) {
    while (!s.empty()) {
      const int kind = s[0] >> 4, number = s[0] & 15;
      if (s.size() < 17 || kind > 1 || number >= kTables) throw BrokenImage(kBadHuffman);
      const Bytes counts = s.subspan(1, 16);
      const auto codes = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
      if (codes > 256 || codes > s.size() - 17) throw BrokenImage(kBadHuffman);
      huffman_[static_cast<std::size_t>(kind)][static_cast<std::size_t>(number)] = true;
      s = s.subspan(17 + codes);
    }
  }

  void take_quantization_tables(Bytes s) {
    while (!s.empty()) {
      const int precision = s[0] >> 4, number = s[0] & 15;
      const std::size_t size = precision ? 129 : 65;
      if (precision > 1 || number >= kTables || s.size() < size)
        throw BrokenImage("one of its quantization tables is broken");
      quantization_[static_cast<std::size_t>(number)] = true;
      s = s.subspan(size);
    }
  }

  void take_scan(Bytes s) {
    if (header_.components == 0) throw BrokenImage("it has data before its header");
    if (s.empty() || s[0] < 1 || s[0] > header_.components || s.size() != 4 + 2U * s[0])
      throw BrokenImage("the header of a scan is broken");
    const Bytes spectrum = s.last(3);
    const bool has_lowest = spectrum[0] == 0;                    // frequency
    const bool refines = progressive_ && spectrum[2] >> 4 != 0;  // an earlier scan
    for (std::size_t i = 0; i < s[0]; ++i) {
      const auto own = std::ranges::find(components_, s[1 + 2 * i], &Component::id);
      if (own - components_.begin() >= header_.components)
        throw BrokenImage("a scan has a colour that the image does not have");
      const std::size_t dc = s[2 + 2 * i] >> 4, ac = s[2 + 2 * i] & 15;
      const bool needs_dc = has_lowest && !refines, needs_ac = !progressive_ || !has_lowest;
      if (dc >= kTables || ac >= kTables || (needs_dc && !huffman_[0][dc]) ||
          (needs_ac && !huffman_[1][ac]))
        throw BrokenImage("it uses a Huffman table that it does not define");
      if (own->quantization_table >= kTables || !quantization_[own->quantization_table])
        throw BrokenImage("it uses a quantization table that it does not define");
      own->scanned |= needs_dc;
    }
  }

  // In a scan's data, 0xff is followed by 0 or is a restart marker. Fill bytes of 0xff may precede
  // it.
  void skip_coded_data() {
    while (at_ < file_.size()) {
      const void* found = std::memchr(file_.data() + at_, 0xff, file_.size() - at_);
      if (!found) break;
      const std::size_t marker =
          static_cast<std::size_t>(static_cast<const std::uint8_t*>(found) - file_.data());
      at_ = marker + 1;
      while (at_ < file_.size() && file_[at_] == 0xff) ++at_;
      if (at_ >= file_.size()) break;
      const std::uint8_t what = file_[at_++];
      if (what != 0 && (what & 0xf8) != kRst0) {
        at_ = marker;
        return;
      }
    }
    throw BrokenImage("it is cut off");
  }

  void take_adobe(Bytes s) {
    using namespace std::string_view_literals;
    constexpr auto kName = "Adobe\0"sv;
    if (s.size() >= 12 && std::equal(kName.begin(), kName.end(), s.begin()))
      header_.adobe_transform_at = static_cast<std::size_t>(s.data() - file_.data()) + 11;
  }

  static constexpr const char* kBadHuffman = "one of its Huffman tables is broken";

  Bytes file_;
  std::size_t at_ = 0;
  JpegHeader header_;
  bool progressive_ = false;
  std::array<Component, 4> components_{};
  std::array<std::array<bool, kTables>, 2> huffman_{};  // [DC, AC][number]: defined so far
  std::array<bool, kTables> quantization_{};
};

}  // namespace

bool is_jpeg(Bytes file) {
  return file.size() >= 3 && file[0] == 0xff && file[1] == kSoi && file[2] == 0xff;
}

JpegHeader check_jpeg(Bytes file) { return Walk(file).run(); }

}  // namespace tandem

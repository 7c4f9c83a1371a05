#include "data/idx.h"

#include <zlib.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <span>

#include "tensor/error.h"

namespace tandem {
namespace {

constexpr std::uint8_t kUnsignedByte = 0x08;

// Reads plain and gzip files alike; zlib tells them apart.
class File {
 public:
  explicit File(const std::filesystem::path& path) : path_(path.string()) {
    if (std::filesystem::is_directory(path))
      throw UserError("{} is a folder, not an IDX file", path_);
    file_.reset(gzopen(path_.c_str(), "rb"));
    if (!file_) throw UserError("cannot open {}: {}", path_, std::strerror(errno));
    gzbuffer(file_.get(), 1 << 17);
    compressed_ = gzdirect(file_.get()) == 0;
  }

  // Fills `out`, or says what is wrong.
  void read(std::span<std::uint8_t> out) {
    while (!out.empty()) {
      const int got = gzread(file_.get(), out.data(),
                             static_cast<unsigned>(std::min<std::size_t>(out.size(), 1 << 20)));
      check_stream(got);
      if (got == 0)
        throw UserError("{} is truncated: {} more bytes were expected", path_, out.size());
      out = out.subspan(static_cast<std::size_t>(got));
    }
  }

  // Reads past the last element; for gzip this also verifies the checksum.
  void expect_end() {
    std::uint8_t extra = 0;
    const int got = gzread(file_.get(), &extra, 1);
    check_stream(got);
    if (got != 0) throw UserError("{} is longer than its header says", path_);
  }

  // The most bytes that the file can hold: deflate shrinks at most 1032 to 1.
  std::uint64_t most_bytes() const {
    return std::filesystem::file_size(path_) * (compressed_ ? 1032 : 1);
  }

  const std::string& path() const { return path_; }

 private:
  void check_stream(int got) const {
    int code = Z_OK;
    const char* message = gzerror(file_.get(), &code);
    if (got >= 0 && (code == Z_OK || code == Z_STREAM_END)) return;
    if (code == Z_ERRNO) throw UserError("cannot read {}: {}", path_, std::strerror(errno));
    if (code == Z_BUF_ERROR) throw UserError("{} is truncated: its gzip stream breaks off", path_);
    throw UserError("{} is damaged: {}", path_, message);
  }

  struct Close {
    void operator()(gzFile file) const { gzclose(file); }
  };
  std::string path_;
  std::unique_ptr<gzFile_s, Close> file_;
  bool compressed_ = false;
};

}  // namespace

IdxFile read_idx(const std::filesystem::path& path, int rank) {
  File file(path);
  std::array<std::uint8_t, 4> magic{};
  file.read(magic);
  if (magic[0] != 0 || magic[1] != 0 || magic[2] != kUnsignedByte || magic[3] != rank)
    throw UserError(
        "{} is not an IDX file of {}-dimensional bytes: its magic number is "
        "{:02x}{:02x}{:02x}{:02x}, not 00000{}{:02x}",
        file.path(), rank, magic[0], magic[1], magic[2], magic[3], kUnsignedByte, rank);

  IdxFile idx;
  std::uint64_t bytes = 1;
  for (int i = 0; i < rank; ++i) {
    std::array<std::uint8_t, 4> size{};
    file.read(size);
    const std::uint64_t value = std::uint64_t{size[0]} << 24 | std::uint64_t{size[1]} << 16 |
                                std::uint64_t{size[2]} << 8 | size[3];
    idx.sizes.push_back(static_cast<std::int64_t>(value));
    // Stays below 2⁶⁴: both factors are checked against what a file can hold, or are 32-bit.
    bytes *= value;
    if (bytes > file.most_bytes())
      throw UserError("{} is truncated: its header promises more than the {} bytes it has",
                      file.path(), std::filesystem::file_size(path));
  }
  idx.bytes.resize(bytes);
  file.read(idx.bytes);
  file.expect_end();
  return idx;
}

}  // namespace tandem

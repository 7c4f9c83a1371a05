#include "data/mnist.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <system_error>

#include "base/error.h"
#include "data/files.h"
#include "data/synthetic.h"

namespace tandem {
namespace {

constexpr std::uint8_t kUnsignedByte = 0x08;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 32;  // the set must fit in memory

// Reads plain and gzip files; zlib tells them apart.
class File {
 public:
  explicit File(const std::filesystem::path& path)
      : path_(path.string()), file_bytes_(regular_file_bytes(path)) {
    file_.reset(gzopen(path_.c_str(), "rb"));
    if (!file_) throw UserError("cannot open {}: {}", path_, std::strerror(errno));
    gzbuffer(file_.get(), 1 << 17);
    plain_ = gzdirect(file_.get()) == 1;
  }

  // Fills `out`; `still` more bytes are expected after it.
  void read(std::span<std::uint8_t> out, std::uint64_t still = 0) {
    while (!out.empty()) {
      const std::size_t most = std::min<std::size_t>(out.size(), 1 << 20);
      const int got = gzread(file_.get(), out.data(), static_cast<unsigned>(most));
      check_stream(got);
      if (got == 0)
        throw UserError("{} is truncated: {} more bytes were expected", path_, out.size() + still);
      out = out.subspan(static_cast<std::size_t>(got));
    }
  }

  // The next `bytes` bytes. Allocates memory as they arrive, because a gzip header may claim any
  // size.
  std::vector<std::uint8_t> read_vector(std::uint64_t bytes) {
    if (plain_ && bytes > file_bytes_)
      throw UserError("{} is truncated: its header says {} bytes, but it has {}", path_, bytes,
                      file_bytes_);
    constexpr std::uint64_t kPiece = 1 << 20;
    std::vector<std::uint8_t> all;
    while (all.size() < bytes) {
      const std::uint64_t piece = std::min(kPiece, bytes - all.size());
      all.resize(all.size() + piece);
      read(std::span(all).last(piece), bytes - all.size());
    }
    return all;
  }

  // Reads past the last element; for gzip this also verifies the checksum.
  void expect_end() {
    std::uint8_t extra = 0;
    const int got = gzread(file_.get(), &extra, 1);
    check_stream(got);
    if (got != 0) throw UserError("{} is longer than its header says", path_);
  }

  const std::string& path() const { return path_; }

 private:
  void check_stream(int got) const {
    int code = Z_OK;
    const char* message = gzerror(file_.get(), &code);
    if (got >= 0 && (code == Z_OK || code == Z_STREAM_END)) return;
    if (code == Z_ERRNO) throw UserError("cannot read {}: {}", path_, std::strerror(errno));
    if (code == Z_BUF_ERROR) throw UserError("{} is truncated: its gzip stream ends early", path_);
    throw UserError("{} is damaged: {}", path_, message);
  }

  struct Close {
    void operator()(gzFile file) const { gzclose(file); }
  };
  std::string path_;
  std::uint64_t file_bytes_;
  std::unique_ptr<gzFile_s, Close> file_;
  bool plain_ = false;
};

}  // namespace

IdxFile read_idx(const std::filesystem::path& path, int rank) {
  File file(path);
  std::array<std::uint8_t, 4> magic{};
  file.read(magic);
  if (magic[0] != 0 || magic[1] != 0 || magic[2] != kUnsignedByte || magic[3] != rank)
    throw UserError(
        "{} is not an IDX file of bytes with {} dimensions: its magic number is "
        "{:02x}{:02x}{:02x}{:02x}, not 0000{:02x}{:02x}",
        file.path(), rank, magic[0], magic[1], magic[2], magic[3], kUnsignedByte, rank);

  IdxFile idx;
  std::uint64_t bytes = 1;
  for (int i = 0; i < rank; ++i) {
    std::array<std::uint8_t, 4> size{};
    file.read(size);
    const std::uint64_t value = std::uint64_t{size[0]} << 24 | std::uint64_t{size[1]} << 16 |
                                std::uint64_t{size[2]} << 8 | size[3];
    idx.sizes.push_back(static_cast<std::int64_t>(value));
    if (__builtin_mul_overflow(bytes, value, &bytes) || bytes > kMostBytes)
      throw UserError("{} claims more than {} bytes, which is the limit", file.path(), kMostBytes);
  }
  idx.bytes = file.read_vector(bytes);
  file.expect_end();
  return idx;
}

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kClasses = 10;

// The path of the file, plain or with .gz appended; empty if neither exists.
fs::path find(const fs::path& folder, const std::string& name) {
  for (const std::string& candidate : {name, name + ".gz"})
    if (std::error_code error; fs::exists(folder / candidate, error)) return folder / candidate;
  return {};
}

fs::path find_or_complain(const fs::path& folder, const std::string& name) {
  fs::path path = find(folder, name);
  if (path.empty())
    throw UserError("{} has no {} (nor {}.gz); `make data` fetches the files", folder.string(),
                    name, name);
  return path;
}

std::shared_ptr<const InMemoryDataset> load_half(const fs::path& folder, const std::string& half) {
  const fs::path images_path = find_or_complain(folder, half + "-images-idx3-ubyte");
  const fs::path labels_path = find_or_complain(folder, half + "-labels-idx1-ubyte");
  IdxFile images = read_idx(images_path, 3);
  IdxFile labels = read_idx(labels_path, 1);
  if (images.sizes[0] != labels.sizes[0])
    throw UserError("{} holds {} images, but {} holds {} labels", images_path.string(),
                    images.sizes[0], labels_path.string(), labels.sizes[0]);
  if (images.sizes[0] == 0) throw UserError("{} holds no images", images_path.string());
  if (images.sizes[1] != 28 || images.sizes[2] != 28)
    throw UserError("{} holds images of {}x{} pixels, not 28x28", images_path.string(),
                    images.sizes[1], images.sizes[2]);
  for (std::size_t i = 0; i < labels.bytes.size(); ++i)
    if (labels.bytes[i] >= kClasses)
      throw UserError("{}: label {} is {}, not 0 to 9", labels_path.string(), i, labels.bytes[i]);
  return std::make_shared<InMemoryDataset>(Shape{28, 28, 1}, kClasses, std::move(images.bytes),
                                           std::move(labels.bytes));
}

DataSplit synthetic(const std::string& reason) {
  const auto train = synthetic_digits(20'000, 1);
  return {train, synthetic_digits(4'000, 2), measure_normalisation(*train),
          "synthetic digits" + reason};
}

}  // namespace

DataSplit load_mnist(const fs::path& folder) {
  require_data_folder(folder, "datasets/mnist");
  const auto train = load_half(folder, "train");
  return {train, load_half(folder, "t10k"), measure_normalisation(*train), folder.string()};
}

DataSplit open_mnist(const std::string& data) {
  if (data == "synthetic") return synthetic("");
  if (!data.empty()) return load_mnist(data);
  for (const fs::path folder : {"datasets/mnist", "datasets/fashion-mnist"})
    if (is_folder(folder)) return load_mnist(folder);
  return synthetic(
      " (neither datasets/mnist nor datasets/fashion-mnist exists; `make data` "
      "fetches them)");
}

}  // namespace tandem

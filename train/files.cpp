#include "train/files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "tensor/error.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

bool is_special(const fs::path& path) { return fs::exists(path) && !fs::is_regular_file(path); }

class Descriptor {
 public:
  Descriptor(const fs::path& path, int flags)
      : path_(path), fd_(::open(path.c_str(), flags, 0666)) {
    if (fd_ < 0) fail("open");
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  void write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t done = ::write(fd_, bytes.data(), bytes.size());
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) fail("write");
      bytes = bytes.subspan(static_cast<std::size_t>(done));
    }
  }
  void sync() {
    if (::fsync(fd_) != 0) fail("sync");
  }
  void close() {
    if (::close(std::exchange(fd_, -1)) != 0) fail("close");
  }

 private:
  [[noreturn]] void fail(const char* operation) const {
    throw SystemError("cannot {} {}: {}", operation, path_.string(), std::strerror(errno));
  }
  fs::path path_;
  int fd_;
};

}  // namespace

void check_writable(const std::string& option, const fs::path& path) {
  if (fs::is_directory(path)) throw UserError("{}: {} is a folder", option, path.string());
  const fs::path folder = folder_of(path);
  if (!fs::is_directory(folder))
    throw UserError("{}: the folder {} does not exist", option, folder.string());
  const fs::path& target = is_special(path) ? path : folder;
  if (::access(target.c_str(), W_OK) != 0)
    throw UserError("{}: cannot write to {}: {}", option, target.string(), std::strerror(errno));
}

void write_file(const fs::path& path, std::span<const std::span<const std::byte>> pieces) {
  if (is_special(path)) {
    Descriptor file(path, O_WRONLY | O_CLOEXEC);
    for (const auto& piece : pieces) file.write(piece);
    file.close();
    return;
  }
  fs::path temporary = path;
  temporary += fmt::format(".tmp.{}", ::getpid());
  try {
    Descriptor file(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC);
    for (const auto& piece : pieces) file.write(piece);
    file.sync();
    file.close();
    if (::rename(temporary.c_str(), path.c_str()) != 0)
      throw SystemError("cannot rename {} to {}: {}", temporary.string(), path.string(),
                        std::strerror(errno));
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  Descriptor(folder_of(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC).sync();
}

void write_file(const fs::path& path, const std::string& text) {
  const std::span<const std::byte> piece = std::as_bytes(std::span(text));
  write_file(path, std::span(&piece, 1));
}

}  // namespace tandem

#include "train/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "tensor/error.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

// Pipes and devices, and what stands for an open file, cannot be replaced by a new file.
bool is_written_directly(const fs::path& path) {
  const std::string name = path.string();
  if (name.starts_with("/dev/") || name.starts_with("/proc/")) return true;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  return fs::exists(status) && !fs::is_regular_file(status);
}

// Where the bytes really go: a link is followed, not replaced.
fs::path destination(const fs::path& path) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  return error ? path : real;
}

fs::path temporary_for(const fs::path& path) {
  fs::path temporary = path;
  temporary += fmt::format(".tmp.{}", ::getpid());
  return temporary;
}

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
  std::error_code error;
  if (fs::is_directory(path, error)) throw UserError("{}: {} is a folder", option, path.string());
  const bool directly = is_written_directly(path);
  const fs::path tried = directly ? path : temporary_for(destination(path));
  const int fd =
      ::open(tried.c_str(), O_WRONLY | O_CLOEXEC | (directly ? O_APPEND : O_CREAT), 0666);
  if (fd < 0)
    throw UserError("{}: cannot write {}: {}", option, path.string(), std::strerror(errno));
  ::close(fd);
  if (!directly) ::unlink(tried.c_str());
}

void write_file(const fs::path& path, std::span<const std::span<const std::byte>> pieces) {
  if (is_written_directly(path)) {
    Descriptor file(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    for (const auto& piece : pieces) file.write(piece);
    file.close();
    return;
  }
  const fs::path target = destination(path), temporary = temporary_for(target);
  try {
    Descriptor file(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC);
    for (const auto& piece : pieces) file.write(piece);
    file.sync();
    file.close();
    if (::rename(temporary.c_str(), target.c_str()) != 0)
      throw SystemError("cannot rename {} to {}: {}", temporary.string(), target.string(),
                        std::strerror(errno));
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  Descriptor(folder_of(target), O_RDONLY | O_DIRECTORY | O_CLOEXEC).sync();
}

void write_file(const fs::path& path, const std::string& text) {
  const std::span<const std::byte> piece = std::as_bytes(std::span(text));
  write_file(path, std::span(&piece, 1));
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file) throw SystemError("cannot read {}: {}", path.string(), std::strerror(errno));
  return text;
}

}  // namespace tandem

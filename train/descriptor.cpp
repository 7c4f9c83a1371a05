#include "train/descriptor.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

namespace tandem {

FileError::FileError(const char* operation, const std::filesystem::path& path, int error)
    : SystemError("cannot {} {}: {}", operation, path.string(), std::strerror(error)),
      code(error) {}

Descriptor::Descriptor(const std::filesystem::path& path, int flags)
    : path_(path), fd_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {
  if (fd_ < 0) fail("open");
}

Descriptor::Descriptor(int fd, const std::string& name) : path_(name), fd_(fd) {
  if (fd_ < 0) fail("open");
}

Descriptor Descriptor::standard_output() {
  return {::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0), "standard output"};
}

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

Descriptor::Descriptor(Descriptor&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

void Descriptor::write(std::span<const std::span<const std::byte>> pieces) {
  constexpr std::size_t kMost = 1024;  // Linux's limit for one call
  std::vector<iovec> left;
  for (const auto& piece : pieces)
    left.push_back({const_cast<std::byte*>(piece.data()), piece.size()});
  for (auto next = left.begin(); next != left.end();) {
    const auto most = std::min(kMost, static_cast<std::size_t>(left.end() - next));
    const ssize_t done = ::writev(fd_, &*next, static_cast<int>(most));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail("write");
    auto bytes = static_cast<std::size_t>(done);
    while (next != left.end() && bytes >= next->iov_len) bytes -= next++->iov_len;
    if (bytes == 0) continue;
    next->iov_base = static_cast<std::byte*>(next->iov_base) + bytes;
    next->iov_len -= bytes;
  }
}

void Descriptor::sync() {
  if (::fsync(fd_) != 0) fail("sync");
}

void Descriptor::truncate(std::int64_t bytes) {
  if (::ftruncate(fd_, bytes) != 0 || ::lseek(fd_, bytes, SEEK_SET) != bytes) fail("shorten");
}

void Descriptor::close() {
  if (::close(std::exchange(fd_, -1)) != 0) fail("close");
}

bool Descriptor::is_regular_file() const {
  struct stat status {};
  return ::fstat(fd_, &status) == 0 && S_ISREG(status.st_mode);
}

bool Descriptor::is_at_path() const {
  struct stat open {
  }, there{};
  return ::fstat(fd_, &open) == 0 && ::stat(path_.c_str(), &there) == 0 &&
         open.st_dev == there.st_dev && open.st_ino == there.st_ino;
}

void Descriptor::fail(const char* operation) const { throw FileError(operation, path_, errno); }

}  // namespace tandem

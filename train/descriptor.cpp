#include "train/descriptor.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

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

void Descriptor::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t done = ::write(fd_, bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail("write");
    bytes = bytes.subspan(static_cast<std::size_t>(done));
  }
}

void Descriptor::sync() {
  if (::fsync(fd_) != 0) fail("sync");
}

void Descriptor::truncate(std::int64_t bytes) {
  if (::ftruncate(fd_, bytes) != 0 || ::lseek(fd_, bytes, SEEK_SET) != bytes) fail("shorten");
}

std::int64_t Descriptor::size() const {
  struct stat status {};
  if (::fstat(fd_, &status) != 0) fail("look at");
  return status.st_size;
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

// An open file, closed by the destructor. All functions throw FileError, which names the path.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "base/error.h"

namespace tandem {

class FileError : public SystemError {
 public:
  FileError(const char* operation, const std::filesystem::path& path, int error);
  const int code;  // from errno
};

class Descriptor {
 public:
  Descriptor(const std::filesystem::path& path, int flags);  // as open(), with O_CLOEXEC
  static Descriptor standard_output();
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&&) = delete;

  // Writes all bytes, in several calls if the system takes only part of them.
  void write(std::span<const std::byte> bytes) { write(std::span(&bytes, 1)); }
  void write(std::span<const std::span<const std::byte>> pieces);
  void sync();
  // Shortens the file. Later writes continue there.
  void truncate(std::int64_t bytes);
  void close();  // throws if written data was lost

  int fd() const { return fd_; }
  const std::filesystem::path& path() const { return path_; }
  bool is_regular_file() const;
  // Whether the path still leads to this file.
  bool is_at_path() const;

 private:
  Descriptor(int fd, const std::string& name);
  [[noreturn]] void fail(const char* operation) const;

  std::filesystem::path path_;
  int fd_;
};

}  // namespace tandem

// An open file, closed at the end. All functions throw FileError with the path.
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
  const int code;  // errno's
};

class Descriptor {
 public:
  Descriptor(const std::filesystem::path& path, int flags);  // as open(); not handed on to programs
  static Descriptor standard_output();
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&&) = delete;

  // All of it, also where the system takes it in parts.
  void write(std::span<const std::byte> bytes);
  void sync();
  void truncate(std::int64_t bytes);
  void close();  // fails where what was written could not be kept

  int fd() const { return fd_; }
  const std::filesystem::path& path() const { return path_; }
  bool is_regular_file() const;
  // Whether the path leads to this file still (or again), not to another one or nowhere.
  bool is_at_path() const;

 private:
  Descriptor(int fd, const std::string& name);
  [[noreturn]] void fail(const char* operation) const;

  std::filesystem::path path_;
  int fd_;
};

}  // namespace tandem

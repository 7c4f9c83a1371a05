// The files and folders that users name on the command line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>

#include "base/error.h"

namespace tandem {

// The size of the file in bytes. Throws UserError with the path if it is not there or not regular:
// a folder, a pipe or a device given by mistake is refused instead of read.
inline std::uint64_t regular_file_bytes(const std::filesystem::path& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (error) throw UserError("cannot open {}: {}", path.string(), error.message());
  if (!std::filesystem::is_regular_file(status))
    throw UserError("{} is not a regular file", path.string());
  return std::filesystem::file_size(path);
}

inline bool is_folder(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

// `usual` is where `make data` puts such a set.
inline void require_data_folder(const std::filesystem::path& folder, const std::string& usual) {
  if (is_folder(folder)) return;
  std::error_code error;
  throw UserError("the data folder {} {}; `make data` creates {}", folder.string(),
                  std::filesystem::exists(folder, error) ? "is not a folder" : "does not exist",
                  usual);
}

}  // namespace tandem

// Input files must be regular files: a folder, a pipe or a device given by mistake is refused
// instead of read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <system_error>

#include "base/error.h"

namespace tandem {

// The size of the file in bytes. Throws UserError with the path if it is not there or not regular.
inline std::uint64_t regular_file_bytes(const std::filesystem::path& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (error) throw UserError("cannot open {}: {}", path.string(), error.message());
  if (!std::filesystem::is_regular_file(status))
    throw UserError("{} is not a regular file", path.string());
  return std::filesystem::file_size(path);
}

}  // namespace tandem

// Data folders that users name on the command line.
#pragma once

#include <filesystem>
#include <string>
#include <system_error>

#include "base/error.h"

namespace tandem {

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

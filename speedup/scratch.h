// A folder for files that nobody keeps.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "train/file_lock.h"

namespace tandem {

// In the system's folder for temporary files; gone at the end. Those of processes that were killed
// are removed by the next one. A lock in each tells which are still in use.
class Scratch {
 public:
  Scratch();  // throws SystemError
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::string operator/(const char* name) const { return folder_ / name; }

 private:
  std::filesystem::path folder_;
  std::optional<LockFile> lock_;
};

}  // namespace tandem

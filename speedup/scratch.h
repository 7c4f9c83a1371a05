// A folder for temporary files.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "train/file_lock.h"

namespace tandem {

// It is in the system's temporary folder and is removed by the destructor. Folders of killed
// processes are removed by the next one. A lock in each folder tells which are still in use.
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

// Runs other programs, and has a folder for what they write.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "train/file_lock.h"

namespace tandem {

class CannotStart : public SystemError {
 public:
  explicit CannotStart(const std::string& program) : SystemError("cannot start {}", program) {}
};

// Returns what the program has printed. The program is searched for on the PATH, runs in `folder`,
// and is killed when this process ends. Throws CannotStart, or SystemError if the exit status is
// not 0; its text is the program's last message on stderr, without the program's name.
std::string run_program(const std::vector<std::string>& command, const std::string& folder = ".");

// A folder for temporary files. It is in the system's temporary folder and is removed by the
// destructor. Folders of killed processes are removed by the next one. A lock in each folder tells
// which are still in use.
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
